/*
 * attempt.c
 *		A call in a subtransaction, so that an error of it leaves nothing behind and need
 *		not be one of the caller's.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/resowner.h"

#include "attempt.h"

/* Call the function; returns the error that it raised, or NULL. */
ErrorData *
lockfence_attempt(void (*function) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		function(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}
