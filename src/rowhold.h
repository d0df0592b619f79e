/*
 * rowhold.h
 *		Rows of row fences that this transaction has presented tokens for.
 */
#ifndef LOCKFENCE_ROWHOLD_H
#define LOCKFENCE_ROWHOLD_H

#include "executor/tuptable.h"
#include "nodes/bitmapset.h"
#include "utils/rel.h"

#include "lockfence.h"

typedef struct RowHold RowHold;

extern bool lockfence_holds_rows;

typedef void (*RowHoldVisitor) (const char *name, FenceToken token, void *arg);

extern void lockfence_hold_row(Relation holder, TupleTableSlot *row, const Bitmapset *key,
							   const char *name, FenceToken token);
extern FenceToken lockfence_find_row_hold(Relation rel, TupleTableSlot *row);
extern const RowHold *lockfence_follow_row(Relation rel, TupleTableSlot *old, TupleTableSlot *new);
extern void lockfence_follow_move(const RowHold *hold, Relation rel, TupleTableSlot *row);
extern bool lockfence_holds_row_by(FenceToken token);
extern void lockfence_visit_row_holds(RowHoldVisitor visit, void *arg);
extern void lockfence_undo_row_holds(int level);
extern void lockfence_reparent_row_holds(int level);
extern void lockfence_forget_row_holds(void);

/* The token presented for that very row; 0: none. */
static inline FenceToken
lockfence_row_hold(Relation rel, TupleTableSlot *row)
{
	return likely(!lockfence_holds_rows) || row == NULL ? 0 : lockfence_find_row_hold(rel, row);
}

#endif							/* LOCKFENCE_ROWHOLD_H */
