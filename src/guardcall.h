/*
 * guardcall.h
 *		How a guard is to be called.
 */
#ifndef LOCKFENCE_GUARDCALL_H
#define LOCKFENCE_GUARDCALL_H

#include "commands/trigger.h"
#include "fmgr.h"

#include "compat.h"

pg_noreturn extern void lockfence_refuse_call(bool row);

/* Raise an error unless called as a BEFORE trigger of the given level.  Inline, since every write comes here. */
static inline void
lockfence_require_guard(FunctionCallInfo fcinfo, bool row)
{
	TriggerEvent event;

	if (CALLED_AS_TRIGGER(fcinfo))
	{
		event = ((TriggerData *) fcinfo->context)->tg_event;
		if (TRIGGER_FIRED_BEFORE(event) && !TRIGGER_FIRED_FOR_ROW(event) == !row)
			return;
	}
	lockfence_refuse_call(row);
}

#endif							/* LOCKFENCE_GUARDCALL_H */
