/*
 * guardcall.c
 *		How a guard is to be called.
 */
#include "postgres.h"

#include "guardcall.h"
#include "lockfence.h"

/* Raise the error for another call. */
void
lockfence_refuse_call(bool row)
{
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("a fence's guard must be fired BEFORE, FOR EACH %s",
					row ? "ROW" : "STATEMENT"),
			 errhint("Use lockfence.attach() to fence a table.")));
}
