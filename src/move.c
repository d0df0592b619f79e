/*
 * move.c
 *		Rows that an UPDATE moves to another partition.
 *
 * PostgreSQL calls the guard of the old partition for the UPDATE and again for a
 * DELETE, and the guard of the new one for an INSERT.  The DELETE half was decided
 * with its UPDATE.  The fence of the new partition decides the INSERT half, and need
 * not be as lenient as the other; but the INSERT presents what its UPDATE presented:
 * the token that the row brings along was not put there by this statement, or was
 * put there as accepted for another resource.  The token columns of the two fences
 * may have different names; each takes as proof what the UPDATE has put into its
 * own.
 *
 * The halves are distinguished from a separate DELETE and INSERT by the row, by the
 * depth of triggers, and by the executor still being at that row.  What is
 * remembered belongs to a subtransaction, as everything that a transaction presents.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "commands/trigger.h"
#include "nodes/pg_list.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "move.h"

/* The row whose UPDATE a guard decided last, at one depth of triggers. */
typedef struct LastRow
{
	int			depth;
	int			level;			/* nesting level that it belongs to */
	ItemPointerData tid;
	RowMove		move;
	uint64		number;			/* of the move if its DELETE half has passed; else 0 */
} LastRow;

#define LAST_ROWS_START 4

static LastRow *last_rows = NULL;
static int	last_used = 0;
static int	last_size = 0;
static uint64 moves = 0;		/* how many there have been */

/* Two partitions that were found to belong to one table, in this transaction. */
static Oid	siblings[2];

/* The transaction ends; TopTransactionContext frees it. */
void
lockfence_forget_moves(void)
{
	last_rows = NULL;
	last_used = last_size = 0;
	siblings[0] = siblings[1] = InvalidOid;
}

/* A subtransaction aborts. */
void
lockfence_undo_moves(int level)
{
	while (last_used > 0 && last_rows[last_used - 1].level >= level)
		last_used--;
}

/* A subtransaction commits: its rows become its parent's. */
void
lockfence_reparent_moves(int level)
{
	for (int i = last_used - 1; i >= 0 && last_rows[i].level >= level; i--)
		last_rows[i].level = level - 1;
}

/*
 * What was remembered at this depth of triggers; NULL: nothing.  What deeper triggers
 * left is obsolete.
 */
static LastRow *
last_row(void)
{
	int			depth = DatumGetInt32(pg_trigger_depth(NULL));

	while (last_used > 0 && last_rows[last_used - 1].depth > depth)
		last_used--;
	return last_used > 0 && last_rows[last_used - 1].depth == depth ?
		&last_rows[last_used - 1] : NULL;
}

/* The same; allocated if there is none. */
static LastRow *
make_last_row(void)
{
	LastRow    *row = last_row();

	if (row != NULL)
		return row;
	if (last_rows == NULL)
	{
		last_rows = MemoryContextAlloc(TopTransactionContext,
									   LAST_ROWS_START * sizeof(LastRow));
		last_size = LAST_ROWS_START;
	}
	else if (last_used == last_size)
	{
		last_rows = repalloc(last_rows, 2 * last_size * sizeof(LastRow));
		last_size *= 2;
	}
	return &last_rows[last_used++];
}

/*
 * Remember the row version whose UPDATE a guard has accepted.  If the UPDATE moves
 * the row to another partition, its halves follow; what triggers write in between
 * is at another depth.
 */
void
lockfence_remember_update(ItemPointer tid, RowMove move)
{
	*make_last_row() = (LastRow) {
		.depth = DatumGetInt32(pg_trigger_depth(NULL)),
		.level = GetCurrentTransactionNestLevel(),
		.tid = *tid,
		.move = move
	};
}

/* The executor is done with a row, and so is its move, with or without an INSERT half. */
static void
end_move(void *arg)
{
	uint64		number = *(uint64 *) arg;

	for (int i = 0; i < last_used; i++)
	{
		if (last_rows[i].number == number)
			last_rows[i].number = 0;
	}
}

/*
 * Begin a move.  The context in which a trigger is called lasts as long as the
 * executor is at the row, so no later statement's INSERT is taken for a half that
 * never came.
 */
static uint64
begin_move(void)
{
	struct
	{
		MemoryContextCallback callback;
		uint64		number;
	}		   *end = palloc0(sizeof(*end));

	end->number = ++moves;
	end->callback.func = end_move;
	end->callback.arg = &end->number;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &end->callback);
	return end->number;
}

/* Is this the DELETE half of a move?  If so, returns the move. */
bool
lockfence_row_moves_out(Oid relid, HeapTuple tuple, RowMove *move)
{
	LastRow    *row = last_row();

	if (row == NULL)
		return false;
	row->number = 0;
	if (row->move.from != relid || !ItemPointerEquals(&row->tid, &tuple->t_self))
		return false;
	row->number = begin_move();
	row->move.old = heap_copytuple(tuple);
	*move = row->move;
	return true;
}

/* The partitioned table that a table is part of, or the table itself. */
static Oid
partition_root(Oid relid)
{
	List	   *ancestors = get_partition_ancestors(relid);

	return ancestors != NIL ? llast_oid(ancestors) : relid;
}

/* Can a row move from one table to the other?  The last two tables are remembered, since most calls repeat them. */
static bool
are_siblings(Oid from, Oid to)
{
	if (siblings[0] == from && siblings[1] == to)
		return true;
	if (partition_root(from) != partition_root(to))
		return false;
	siblings[0] = from;
	siblings[1] = to;
	return true;
}

/* Is this the INSERT half of a move?  If so, returns the move. */
bool
lockfence_row_moves_in(Oid relid, RowMove *move)
{
	LastRow    *row = last_row();

	if (row == NULL || row->number == 0 || !are_siblings(row->move.from, relid))
		return false;
	row->number = 0;
	*move = row->move;
	return true;
}
