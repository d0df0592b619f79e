/*
 * rowhold.c
 *		Rows of row fences that this transaction has presented tokens for.
 *
 * The row itself is held by a lock on it.  What is remembered here is which token its
 * later writes present.  A row has no name, and another place after each UPDATE, so it
 * is known by its table and the values of its unique key.  Of two tokens presented for
 * a row, the later one counts.
 */
#include "postgres.h"

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "rowhold.h"

typedef struct RowHold
{
	int			level;			/* nesting level that it belongs to */
	Oid			relid;
	const char *name;			/* as refusals name the row to the caller */
	FenceToken	token;
	const Bitmapset *key;		/* columns of the table */
	Datum	   *values;			/* ... in their order */
} RowHold;

bool		lockfence_holds_rows = false;
static List *holds = NIL;		/* the last one first */

/* The values of the key, copied. */
static Datum *
copy_key(TupleDesc desc, TupleTableSlot *row, const Bitmapset *key)
{
	Datum	   *values = palloc(bms_num_members(key) * sizeof(Datum));
	int			attno = -1;
	int			n = 0;

	while ((attno = bms_next_member(key, attno)) >= 0)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, attno - 1);
		bool		isnull;
		Datum		value = slot_getattr(row, attno, &isnull);

		values[n++] = datumCopy(value, attribute->attbyval, attribute->attlen);
	}
	return values;
}

/* Remember a row by its key, whose columns are never null. */
void
lockfence_hold_row(Relation holder, TupleTableSlot *row, const Bitmapset *key,
				   const char *name, FenceToken token)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	RowHold    *hold = palloc(sizeof(RowHold));

	*hold = (RowHold) {
		.level = GetCurrentTransactionNestLevel(),
		.relid = RelationGetRelid(holder),
		.name = pstrdup(name),
		.token = token,
		.key = bms_copy(key),
		.values = copy_key(RelationGetDescr(holder), row, key)
	};
	holds = lcons(hold, holds);
	lockfence_holds_rows = true;
	MemoryContextSwitchTo(old);
}

static bool
has_key(const RowHold *hold, TupleDesc desc, TupleTableSlot *row)
{
	int			attno = -1;
	int			n = 0;

	while ((attno = bms_next_member(hold->key, attno)) >= 0)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, attno - 1);
		bool		isnull;
		Datum		value = slot_getattr(row, attno, &isnull);

		if (isnull || !datum_image_eq(value, hold->values[n++], attribute->attbyval, attribute->attlen))
			return false;
	}
	return true;
}

/* The token presented for the row; 0: none. */
FenceToken
lockfence_find_row_hold(Relation rel, TupleTableSlot *row)
{
	ListCell   *cell;

	foreach(cell, holds)
	{
		const RowHold *hold = (const RowHold *) lfirst(cell);

		if (hold->relid == RelationGetRelid(rel) && has_key(hold, RelationGetDescr(rel), row))
			return hold->token;
	}
	return 0;
}

/* Was the token presented for a row? */
bool
lockfence_holds_row_by(FenceToken token)
{
	ListCell   *cell;

	foreach(cell, holds)
	{
		if (((const RowHold *) lfirst(cell))->token == token)
			return true;
	}
	return false;
}

/* Show a visitor the rows with the tokens that were presented for them. */
void
lockfence_visit_row_holds(RowHoldVisitor visit, void *arg)
{
	ListCell   *cell;

	foreach(cell, holds)
	{
		const RowHold *hold = (const RowHold *) lfirst(cell);

		visit(hold->name, hold->token, arg);
	}
}

/* A subtransaction aborts. */
void
lockfence_undo_row_holds(int level)
{
	while (holds != NIL && ((RowHold *) linitial(holds))->level >= level)
		holds = list_delete_first(holds);
	lockfence_holds_rows = holds != NIL;
}

/* A subtransaction commits: its rows become its parent's. */
void
lockfence_reparent_row_holds(int level)
{
	ListCell   *cell;

	foreach(cell, holds)
	{
		RowHold    *hold = (RowHold *) lfirst(cell);

		if (hold->level < level)
			break;
		hold->level = level - 1;
	}
}

/* The transaction ends; TopTransactionContext frees it. */
void
lockfence_forget_row_holds(void)
{
	holds = NIL;
	lockfence_holds_rows = false;
}
