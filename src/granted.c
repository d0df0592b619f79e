/*
 * granted.c
 *		The session's grant, presented before another token is.
 *
 * A write finds the session's grant among the tokens that are presented for it
 * (presented.c).  A function that is given another token has to find it presented
 * already, so that a lower token is stale, and the next one that is issued is higher.
 */
#include "postgres.h"

#include "check.h"
#include "fence.h"
#include "grant.h"
#include "granted.h"
#include "presented.h"

static void
present(const FenceCheck *check, const char *resource, FenceToken token)
{
	FenceCheck	first = {
		.write = {.rel = check->write.rel,.resource = resource,.advisory = check->write.advisory},
		.by_administrator = check->by_administrator,
		.no_wait = check->no_wait
	};
	PresentedTokens tokens = lockfence_given_token(resource, token);
	FenceToken	previous;

	(void) lockfence_admit(&first, &tokens, &previous);
}

/* Present the session's token for the resource, which may have to be the first of two. */
void
lockfence_present_granted(const FenceCheck *check, FenceToken token)
{
	FenceToken	granted = lockfence_named_in_force(check->write.resource);

	if (granted != 0 && granted != token)
		present(check, check->write.resource, granted);
}

/*
 * Present the token for the lock that the session was granted it for, if any: where a
 * validator has to be asked before the token raises the mark in a row, it is asked about
 * a lock.
 */
void
lockfence_present_granted_lock(const FenceCheck *check, FenceToken token)
{
	const char *lock = lockfence_grant_problem() == NULL ? lockfence_granted_resource(token) : NULL;

	if (lock != NULL)
		present(check, lock, token);
}
