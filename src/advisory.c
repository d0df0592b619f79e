/*
 * advisory.c
 *		Fences that report instead of refusing.
 *
 * Such a fence changes no statement's outcome.  A refusal is a report (refuse.c), and
 * so is whatever keeps the fence from deciding: a null where the resource's name should
 * be, a column that was renamed, a validator that fails, a mark that cannot be read or
 * written.  These are errors where they occur, so the decision runs in a
 * subtransaction, whose end takes back what it did up to there.
 *
 * It does not wait either (lockwait.c): what it waited for might wait for this
 * transaction, and one of the two would be the victim.
 *
 * An error that ends the session's statement from outside is not the fence's: a cancel,
 * a time-out, a shutdown.
 */
#include "postgres.h"

#include "advisory.h"
#include "attempt.h"
#include "lockfence.h"
#include "refuse.h"
#include "xact.h"

/* Is that error meant for the session, whatever it does? */
bool
lockfence_is_of_session(const ErrorData *error)
{
	return ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION;
}

/*
 * Let an advisory fence decide.  Returns false if it could not, which is reported: the
 * write goes on as it came.
 */
bool
lockfence_decide_advisorily(const FencedWrite *write, const Fence *fence,
							Decision decide, void *arg)
{
	ErrorData  *error = fence ? fence->fault : NULL;

	if (error == NULL)
		error = lockfence_attempt(decide, arg);
	if (error == NULL)
		return true;
	if (lockfence_is_of_session(error))
		ReThrowError(error);
	/* the write is not one of which no fence was asked */
	if (fence != NULL)
		lockfence_check_ambient_token();
	lockfence_report_undecided(write, error);
	return false;
}
