/*
 * shown.h
 *		The token that a write shows.
 */
#ifndef LOCKFENCE_SHOWN_H
#define LOCKFENCE_SHOWN_H

#include "access/htup.h"
#include "commands/trigger.h"

#include "fencedef.h"
#include "move.h"

/* The tokens that a write shows, 0 where there is none.  They have to agree. */
typedef struct ShownTokens
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
} ShownTokens;

/* One call of the row guard, see guard.c. */
typedef struct RowGuard
{
	struct TriggerData *trigger;
	const Fence *fence;
	Relation	rel;
	TupleTableSlot *old;		/* NULL on INSERT */
	TupleTableSlot *new;		/* NULL on DELETE */
	bool		is_half;		/* this DELETE or INSERT is a half ... */
	RowMove		move;			/* ... of that row's move */
	bool		changes_hands;	/* the UPDATE gives the row to another resource */
} RowGuard;

extern FenceToken lockfence_token_in(const RowGuard *guard, HeapTuple tuple);
extern FenceToken lockfence_old_token(const RowGuard *guard);
extern FenceToken lockfence_set_token(const RowGuard *guard, bool *isnull);
extern bool lockfence_column_is_set(const RowGuard *guard);
extern ShownTokens lockfence_presented_tokens(Relation rel, const char *resource);
extern ShownTokens lockfence_row_tokens(const RowGuard *guard, const char *resource);
extern bool lockfence_choose_token(const FencedWrite *write, const ShownTokens *shown,
								   FenceToken *token);
extern void lockfence_settle_missing(const FenceCheck *check);

#endif							/* LOCKFENCE_SHOWN_H */
