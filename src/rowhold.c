/*
 * rowhold.c
 *		Rows of row fences that this transaction has presented tokens for.
 *
 * The row itself is held by a lock on it.  What is remembered here is which token its
 * later writes present.  A row has no name, and another place after each UPDATE, so it
 * is known by its table and the values of its unique key.  If this transaction changes
 * those, or moves the row to another partition, the token counts for it there as well.
 * Of two tokens presented for a row, the later one counts.
 */
#include "postgres.h"

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "rowhold.h"

struct RowHold
{
	int			level;			/* nesting level that it belongs to */
	Oid			relid;
	const char *name;			/* as refusals name the row to the caller; NULL: it has
								 * been told by a hold before it */
	FenceToken	token;
	const Bitmapset *key;		/* columns of the table */
	Datum	   *values;			/* ... in their order */
	Oid		   *types;			/* as they were: DDL may change them */
};

bool		lockfence_holds_rows = false;
static List *holds = NIL;		/* the last one first */

/* Copy the values of the key, and note their types. */
static void
copy_key(RowHold *hold, TupleDesc desc, TupleTableSlot *row)
{
	int			attno = -1;
	int			n = 0;

	hold->values = palloc(bms_num_members(hold->key) * sizeof(Datum));
	hold->types = palloc(bms_num_members(hold->key) * sizeof(Oid));
	while ((attno = bms_next_member(hold->key, attno)) >= 0)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, attno - 1);
		bool		isnull;
		Datum		value = slot_getattr(row, attno, &isnull);

		hold->types[n] = attribute->atttypid;
		hold->values[n++] = datumCopy(value, attribute->attbyval, attribute->attlen);
	}
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
		.name = name ? pstrdup(name) : NULL,
		.token = token,
		.key = bms_copy(key)
	};
	copy_key(hold, RelationGetDescr(holder), row);
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

		if (isnull || attribute->atttypid != hold->types[n] ||
			!datum_image_eq(value, hold->values[n], attribute->attbyval, attribute->attlen))
			return false;
		n++;
	}
	return true;
}

static const RowHold *
find_hold(Relation rel, TupleTableSlot *row)
{
	ListCell   *cell;

	foreach(cell, holds)
	{
		const RowHold *hold = (const RowHold *) lfirst(cell);

		if (hold->relid == RelationGetRelid(rel) && has_key(hold, RelationGetDescr(rel), row))
			return hold;
	}
	return NULL;
}

/* The token presented for the row; 0: none. */
FenceToken
lockfence_find_row_hold(Relation rel, TupleTableSlot *row)
{
	const RowHold *hold = find_hold(rel, row);

	return hold ? hold->token : 0;
}

/* Have the token of a row count for its new version, which may have another key.  NULL: there is none. */
const RowHold *
lockfence_follow_row(Relation rel, TupleTableSlot *old, TupleTableSlot *new)
{
	const RowHold *hold = find_hold(rel, old);

	if (hold != NULL && lockfence_find_row_hold(rel, new) != hold->token)
		lockfence_hold_row(rel, new, hold->key, NULL, hold->token);
	return hold;
}

/* The same for a row that has moved to another partition, which numbers its columns as it likes. */
void
lockfence_follow_move(const RowHold *hold, Relation rel, TupleTableSlot *row)
{
	Bitmapset  *key = NULL;
	int			attno = -1;

	while ((attno = bms_next_member(hold->key, attno)) >= 0)
		key = bms_add_member(key, get_attnum(RelationGetRelid(rel), get_attname(hold->relid, attno, false)));
	lockfence_hold_row(rel, row, key, NULL, hold->token);
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

		if (hold->name != NULL)
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
