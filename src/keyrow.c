/*
 * keyrow.c
 *		The rows that a unique key names, in their latest versions.
 *
 * They are looked for as the owner of their table, in a security-restricted operation:
 * the caller's privileges need not cover the system columns that tell where a row is.
 * So the caller must be known to see the row.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_index.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "asowner.h"
#include "jsonvalue.h"
#include "keyrow.h"
#include "visible.h"

/*
 * Become the owner of a table, restricted.  Triggers often name objects in their
 * table's schema without qualification, so the search path has that schema.  If all
 * rows are to be seen, row security that would hide one is an error.
 */
FormerSelf
lockfence_become_owner(Relation rel, bool sees_all)
{
	const char *schema = quote_identifier(get_namespace_name(RelationGetNamespace(rel)));
	FormerSelf	self = lockfence_become(rel->rd_rel->relowner,
										psprintf("pg_catalog, %s, pg_temp", schema));

	(void) set_config_option("row_security", sees_all ? "off" : "on", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	return self;
}

/* A table as SQL names it. */
char *
lockfence_table_in_sql(Relation rel)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
									  RelationGetRelationName(rel));
}

/* The column among those of the key, if it is never null; else NULL. */
static const GivenColumn *
key_column(Relation rel, AttrNumber attno, const GivenColumn *keys, int nkeys)
{
	if (attno <= 0 || !TupleDescAttr(RelationGetDescr(rel), attno - 1)->attnotnull)
		return NULL;
	for (int i = 0; i < nkeys; i++)
	{
		if (keys[i].attno == attno)
			return &keys[i];
	}
	return NULL;
}

/*
 * The columns of a unique index, which ensures that at most one row of the table has
 * them; NULL if the key lacks one, or the index does not ensure that.
 */
static GivenColumn *
index_key(Relation rel, Oid indexid, const GivenColumn *keys, int nkeys, int *nunique)
{
	Relation	index = index_open(indexid, AccessShareLock);
	Form_pg_index form = index->rd_index;
	bool		covers = form->indisunique && form->indisvalid &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);
	GivenColumn *unique = palloc(form->indnkeyatts * sizeof(GivenColumn));

	for (*nunique = 0; covers && *nunique < form->indnkeyatts; (*nunique)++)
	{
		const GivenColumn *column = key_column(rel, form->indkey.values[*nunique], keys, nkeys);

		covers = column != NULL;
		if (covers)
			unique[*nunique] = *column;
	}
	index_close(index, AccessShareLock);
	return covers ? unique : NULL;
}

/* The columns of the primary key or, if the key lacks one, of another unique key; NULL if it has none. */
GivenColumn *
lockfence_unique_key(Relation rel, const GivenColumn *keys, int nkeys, int *nunique)
{
	List	   *indexes = RelationGetIndexList(rel);
	GivenColumn *unique = NULL;
	ListCell   *cell;

	if (OidIsValid(rel->rd_pkindex))
		unique = index_key(rel, rel->rd_pkindex, keys, nkeys, nunique);
	foreach(cell, indexes)
	{
		if (unique != NULL)
			break;
		unique = index_key(rel, lfirst_oid(cell), keys, nkeys, nunique);
	}
	return unique;
}

/* Run a query for the rows that have a key; SPI must be connected. */
void
lockfence_query_key(Relation rel, const char *columns, const GivenColumn *keys, int nkeys,
					bool lock)
{
	StringInfoData query;
	Oid		   *types = palloc(nkeys * sizeof(Oid));
	Datum	   *values = palloc(nkeys * sizeof(Datum));
	int			nparams = 0;
	int			result;

	initStringInfo(&query);
	appendStringInfo(&query, "SELECT %s FROM %s", columns, lockfence_table_in_sql(rel));
	for (int i = 0; i < nkeys; i++)
	{
		appendStringInfoString(&query, i > 0 ? " AND " : " WHERE ");
		lockfence_append_key(&query, &keys[i], nparams + 1);
		if (keys[i].isnull)
			continue;
		types[nparams] = keys[i].type;
		values[nparams++] = keys[i].value;
	}
	if (lock)
		appendStringInfoString(&query, " FOR NO KEY UPDATE");
	result = SPI_execute_with_args(query.data, nparams, types, values, NULL, !lock, 0);
	if (result != SPI_OK_SELECT)
		elog(ERROR, "\"%s\" failed: %s", query.data, SPI_result_code_string(result));
}

/* A row of that query. */
static KeyRow *
key_row(HeapTuple tuple, TupleDesc desc)
{
	KeyRow	   *row = palloc(sizeof(KeyRow));
	bool		isnull;

	row->relid = DatumGetObjectId(SPI_getbinval(tuple, desc, 1, &isnull));
	row->tid = *(ItemPointer) DatumGetPointer(SPI_getbinval(tuple, desc, 2, &isnull));
	return row;
}

/*
 * The rows that have the key: one, or none, but for tables that inherit from the
 * table.  If asked, locked until the end of the transaction.  Must be called as the
 * table's owner.
 */
List *
lockfence_rows_with_key(Relation rel, const GivenColumn *keys, int nkeys, bool lock)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *rows = NIL;

	/* a new snapshot; that of the transaction may be an old one */
	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	lockfence_query_key(rel, "tableoid, ctid", keys, nkeys, lock);
	MemoryContextSwitchTo(caller);
	for (uint64 i = 0; i < SPI_processed; i++)
		rows = lappend(rows, key_row(SPI_tuptable->vals[i], SPI_tuptable->tupdesc));
	SPI_finish();
	PopActiveSnapshot();
	return rows;
}

/* The version that was found, with the table or partition that holds it. */
TupleTableSlot *
lockfence_fetch_row(const KeyRow *found, LOCKMODE mode, Relation *holder)
{
	ItemPointerData tid = found->tid;
	TupleTableSlot *row;

	*holder = table_open(found->relid, mode);
	if ((*holder)->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("the row that has the key is in foreign table \"%s\"",
						lockfence_visible(RelationGetRelationName(*holder)))));
	row = table_slot_create(*holder, NULL);
	if (!table_tuple_fetch_row_version(*holder, &tid, SnapshotAny, row))
		elog(ERROR, "failed to fetch a row that was found");
	slot_getallattrs(row);
	return row;
}

/* The transaction that has written this version of a row. */
TransactionId
lockfence_row_writer(TupleTableSlot *row)
{
	bool		isnull;

	return DatumGetTransactionId(slot_getsysattr(row, MinTransactionIdAttributeNumber, &isnull));
}

void
lockfence_drop_row(TupleTableSlot *row, Relation holder)
{
	ExecDropSingleTupleTableSlot(row);
	table_close(holder, NoLock);
}
