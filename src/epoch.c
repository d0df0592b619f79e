/*
 * epoch.c
 *		Is a token in force at all?  The epoch and the minimum decide for every resource
 *		alike, before its mark does.
 */
#include "postgres.h"

#include "check.h"
#include "epoch.h"
#include "lockfence.h"
#include "refuse.h"
#include "state.h"
#include "timeline.h"
#include "token.h"

/* Is the token of that epoch, if one was set, and not below the minimum? */
static inline bool
is_in_force(FenceToken token, int current, FenceToken minimum)
{
	return lockfence_compare(token, minimum) != STALE &&
		(current < 0 || lockfence_token_epoch(token) == current);
}

/* The same, by now; refuses the token if not. */
bool
lockfence_check_epoch(const FencedWrite *write, FenceToken token)
{
	int			current = lockfence_state_epoch();
	FenceToken	minimum = lockfence_state_minimum();

	if (is_in_force(token, current, minimum))
		return true;
	if (current >= 0 && lockfence_token_epoch(token) > current)
		lockfence_refuse_unknown_epoch(write, token, current);
	else if (lockfence_compare(token, minimum) == STALE)
		lockfence_refuse_stale(write, token, minimum, "minimum of lockfence.reopen()", 0);
	else
		lockfence_refuse_old_epoch(write, token, current);
	return false;
}

/* Would the token be accepted now, beside that mark?  For advice. */
bool
lockfence_would_pass(FenceToken token, FenceToken mark, bool single_use)
{
	if (lockfence_gate_is_sealed() ||
		!is_in_force(token, lockfence_state_epoch(), lockfence_state_minimum()))
		return false;
	return lockfence_compare(token, mark) >= (single_use ? HIGHER : EQUAL);
}
