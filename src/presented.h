/*
 * presented.h
 *		The tokens that a write presents.
 */
#ifndef LOCKFENCE_PRESENTED_H
#define LOCKFENCE_PRESENTED_H

#include "check.h"
#include "fencedef.h"
#include "takeovers.h"
#include "xact.h"

/* The tokens that a write presents, 0 where there is none.  They have to agree. */
typedef struct PresentedTokens
{
	FenceToken	column;			/* put there by the statement ... */
	bool		is_invalid;		/* ... and no token, or ... */
	bool		is_null;		/* ... null */
	FenceToken	named;			/* presented for the resource */
	FenceToken	ambient;		/* presented for whatever is written */
	FenceToken	given;			/* to the function that is called */
	bool		is_settled;		/* refused and reported for the whole call, where
								 * the fence is advisory */
	FenceToken	carried;		/* accepted for the other half of a row's move;
								 * counts where the rest is missing */
	TokenLimit	limit;			/* of what was presented before */
} PresentedTokens;

/* The ambient token, if the fence lets it count for the write. */
static inline FenceToken
lockfence_counted_ambient(const FenceCheck *check, const PresentedTokens *tokens)
{
	return check->fence != NULL && unlikely(check->fence->named_only) ? 0 : tokens->ambient;
}

extern bool lockfence_admit_session_grant(const FencedWrite *write);
extern FenceToken lockfence_ambient_in_force(void);
extern FenceToken lockfence_named_in_force(const char *resource);
extern PresentedTokens lockfence_named_tokens(const char *resource);
extern PresentedTokens lockfence_presented_tokens(Relation rel, const char *resource);
extern PresentedTokens lockfence_given_token(const char *resource, FenceToken token);
extern bool lockfence_choose_token(FenceCheck *check, const PresentedTokens *tokens);
extern AdvanceWay lockfence_way_of_token(const FenceCheck *check);
extern void lockfence_settle_missing(const FenceCheck *check);

#endif							/* LOCKFENCE_PRESENTED_H */
