/*
 * rowtokens.h
 *		The tokens in a row that is written, as its guard sees it.
 */
#ifndef LOCKFENCE_ROWTOKENS_H
#define LOCKFENCE_ROWTOKENS_H

#include "access/htup.h"
#include "commands/trigger.h"

#include "fencedef.h"
#include "move.h"
#include "presented.h"

/* One call of the row guard, see guard.c. */
typedef struct RowGuard
{
	struct TriggerData *trigger;
	const Fence *fence;
	Relation	rel;
	TupleTableSlot *old;		/* NULL on INSERT */
	TupleTableSlot *new;		/* NULL on DELETE */
	HeapTuple	written;		/* what goes on, as it came or with its token */
	bool		is_half;		/* this DELETE or INSERT is a half ... */
	RowMove		move;			/* ... of that row's move */
	bool		changes_hands;	/* the UPDATE gives the row to another resource */
} RowGuard;

extern FenceToken lockfence_token_in(const RowGuard *guard, HeapTuple tuple);
extern FenceToken lockfence_stored_token(const Fence *fence, TupleTableSlot *row);
extern FenceToken lockfence_old_token(const RowGuard *guard);
extern FenceToken lockfence_set_token(const RowGuard *guard, bool *isnull);
extern bool lockfence_column_is_set(const RowGuard *guard);
extern PresentedTokens lockfence_row_tokens(const RowGuard *guard, const char *resource);
extern bool lockfence_sets_column(const Bitmapset *columns, AttrNumber attno);
extern bool lockfence_shares_column(const RowGuard *guard);
extern FenceToken lockfence_mark_of_move(const RowGuard *guard);
extern FenceToken lockfence_token_of_move(const RowGuard *guard);

#endif							/* LOCKFENCE_ROWTOKENS_H */
