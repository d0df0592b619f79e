/*
 * guardcall.c
 *		How a guard is to be called.
 */
#include "postgres.h"

#include "commands/trigger.h"

#include "guardcall.h"
#include "lockfence.h"

/* Raise an error unless called as a BEFORE trigger of the given level. */
void
lockfence_require_guard(FunctionCallInfo fcinfo, bool row)
{
	TriggerEvent event;

	if (CALLED_AS_TRIGGER(fcinfo))
	{
		event = ((TriggerData *) fcinfo->context)->tg_event;
		if (TRIGGER_FIRED_BEFORE(event) && !TRIGGER_FIRED_FOR_ROW(event) == !row)
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("a fence's guard must be fired BEFORE, FOR EACH %s",
					row ? "ROW" : "STATEMENT"),
			 errhint("Use lockfence.attach() to fence a table.")));
}
