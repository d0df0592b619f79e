/*
 * move.h
 *		Rows that move to another partition.
 */
#ifndef LOCKFENCE_MOVE_H
#define LOCKFENCE_MOVE_H

#include "access/htup.h"
#include "nodes/bitmapset.h"

#include "lockfence.h"

typedef struct RowMove
{
	Oid			from;			/* the partition that it leaves, ... */
	const char *column;			/* ... its fence's token column; NULL: none */
	FenceToken	set_token;		/* in that, by the UPDATE; 0: none */
	FenceToken	accepted;		/* for the UPDATE; 0: it went unprotected */
	bool		by_row;			/* ... for the row itself, by its own mark */
	bool		is_new;			/* ... and not in the row before this transaction */
	const Bitmapset *set;		/* the columns that the UPDATE sets, as that
								 * partition numbers them */
	const struct RowHold *hold; /* by which the row was presented for; NULL: none */
	HeapTuple	old;			/* the row before; known once it has moved out */
} RowMove;

extern void lockfence_remember_update(ItemPointer tid, RowMove move);
extern bool lockfence_row_moves_out(Oid relid, HeapTuple tuple, RowMove *move);
extern bool lockfence_row_moves_in(Oid relid, RowMove *move);
extern void lockfence_undo_moves(int level);
extern void lockfence_reparent_moves(int level);
extern void lockfence_forget_moves(void);

#endif							/* LOCKFENCE_MOVE_H */
