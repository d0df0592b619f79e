/*
 * survey.c
 *		The tokens in a table's rows that are above the marks of their resources.
 *
 * Administrators run verify() and reconcile() over tables of other owners.  A
 * query would run what those owners defined with the administrator's rights: the
 * query of a view, a policy, a cast from the token column's type.  So this file
 * reads the rows from the tables themselves and calls nothing of the owner's: a
 * token must be stored as bigint, and the values that make a resource's name are
 * printed by their types' output functions.  Those take or return cstring, which
 * only languages allow that superusers alone can use.
 *
 * What a query would be denied is denied here too: it takes SELECT on the table,
 * and a table whose policies would hide rows from the caller is refused, since
 * an answer about the visible rows would pass for one about all.
 *
 * A row is read by a snapshot, and its mark after that.  An accepted write commits
 * row and mark together, and marks only rise, so a mark that is lower than the
 * row's token stays lower until reconcile() or a write of that resource raises it.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "fencedef.h"
#include "lockfence.h"
#include "mark.h"
#include "rows.h"
#include "state.h"
#include "template.h"
#include "token.h"
#include "trigarg.h"
#include "visible.h"

/* A value of more bytes never prints in less than the 1,024 that a name may have. */
#define MAX_VALUE_SIZE (64 * 1024)

typedef struct Survey
{
	ReturnSetInfo *found;
	char	   *template;
	char	   *token_column;
	int64		left;			/* rows still to be read; negative: all */
	MemoryContext memory;		/* of one row */

	/* the row that was found last: many that follow are the same */
	StringInfoData last_name;
	FenceToken	last_token;
} Survey;

PG_FUNCTION_INFO_V1(lockfence_rows_above_marks);

/* May the caller read the whole table?  Raises an error if not. */
static void
require_readable(Oid relid)
{
	char	   *name = get_rel_name(relid);
	char		kind = get_rel_relkind(relid);
	AclResult	allowed;

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("there is no relation with OID %u", relid)));
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table", lockfence_visible(name))));
	allowed = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT);
	if (allowed != ACLCHECK_OK)
		aclcheck_error(allowed, OBJECT_TABLE, lockfence_visible(name));
	if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("row-level security hides rows of table \"%s\"",
						lockfence_visible(name)),
				 errdetail("The marks of hidden rows would stay as they are."),
				 errhint("Call the function as a role that bypasses row-level security.")));
}

/* The columns of the fence in this table, whose column numbers may differ. */
static Fence *
resolve_layout(const Survey *survey, Relation rel)
{
	Fence	   *fence = palloc0(sizeof(Fence));

	fence->resource = survey->template;
	lockfence_split_template(fence, survey->template);
	lockfence_resolve_template(fence, rel);
	fence->token_attno = lockfence_resolve_column(rel, survey->token_column);
	fence->token_column = survey->token_column;
	fence->reads_column = true;
	lockfence_take_token_type(fence, TupleDescAttr(RelationGetDescr(rel), fence->token_attno - 1)->atttypid);
	return fence;
}

/* Has a row with this resource and this or a higher token been found? */
static bool
is_known(const Survey *survey, const char *name, FenceToken token)
{
	return token <= survey->last_token && strcmp(name, survey->last_name.data) == 0;
}

/* Return a row whose token is above its mark, or above the floor if there is none. */
static void
report_row(Survey *survey, const char *name, FenceToken token)
{
	FenceToken	mark = lockfence_mark_peek(name);
	Datum		values[3] = {CStringGetTextDatum(name), Int64GetDatum(token), BoolGetDatum(mark != 0)};
	bool		nulls[3] = {false};

	resetStringInfo(&survey->last_name);
	appendStringInfoString(&survey->last_name, name);
	survey->last_token = token;
	if (lockfence_compare(token, mark != 0 ? mark : lockfence_state_floor()) == HIGHER)
		tuplestore_putvalues(survey->found->setResult, survey->found->setDesc, values, nulls);
}

/*
 * Is a column's value too long for the text of a name?  Printing it could run out
 * of memory, and fail the administrator's look at all tables.
 */
static bool
is_beyond_names(const Fence *fence, TupleTableSlot *slot)
{
	for (int i = 0; i < fence->nparts; i++)
	{
		AttrNumber	attno = fence->parts[i].attno;
		bool		isnull;
		Datum		value;

		if (attno == 0 || TupleDescAttr(slot->tts_tupleDescriptor, attno - 1)->attlen != -1)
			continue;
		value = slot_getattr(slot, attno, &isnull);
		if (!isnull && toast_raw_datum_size(value) > MAX_VALUE_SIZE)
			return true;
	}
	return false;
}

/* Look at one row, unless it has no token or its values name no resource. */
static void
survey_row(Survey *survey, const Fence *fence, TupleTableSlot *slot)
{
	bool		isnull;
	FenceToken	token = lockfence_column_token(fence, slot_getattr(slot, fence->token_attno, &isnull));
	char	   *name;

	if (isnull || token <= 0 || is_beyond_names(fence, slot))
		return;
	name = lockfence_find_resource(fence, slot);
	if (name != NULL && !is_known(survey, name, token))
		report_row(survey, name, token);
}

/* Look at the rows of one table. */
static void
survey_table(Survey *survey, Relation rel)
{
	MemoryContext before = CurrentMemoryContext;
	Fence	   *fence = resolve_layout(survey, rel);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = lockfence_table_beginscan(rel, GetActiveSnapshot());

	while (survey->left != 0 && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		survey->left--;
		MemoryContextSwitchTo(survey->memory);
		survey_row(survey, fence, slot);
		MemoryContextSwitchTo(before);
		MemoryContextReset(survey->memory);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

/* Look at a table, unless its rows are elsewhere: in partitions, or on another server. */
static void
survey_relation(Survey *survey, Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);

	if (rel->rd_rel->relkind == RELKIND_RELATION && !RELATION_IS_OTHER_TEMP(rel))
		survey_table(survey, rel);
	table_close(rel, NoLock);
}

/*
 * _rows_above_marks(target regclass, template text, token_column text, sample
 * integer): the tokens above the marks of their resources, in a table with its
 * partitions and children, or in that many rows of the table alone.  A resource
 * may be returned more than once.
 */
Datum
lockfence_rows_above_marks(PG_FUNCTION_ARGS)
{
	Oid			target = PG_GETARG_OID(0);
	bool		is_sample = !PG_ARGISNULL(3);
	Survey		survey = {
		.found = (ReturnSetInfo *) fcinfo->resultinfo,
		.template = text_to_cstring(PG_GETARG_TEXT_PP(1)),
		.token_column = text_to_cstring(PG_GETARG_TEXT_PP(2)),
		.left = is_sample ? PG_GETARG_INT32(3) : -1
	};
	List	   *tables;
	ListCell   *table;

	lockfence_begin_rows(fcinfo);
	/* before the table is locked, and again when it cannot change any more */
	require_readable(target);
	LockRelationOid(target, AccessShareLock);
	require_readable(target);
	survey.memory = AllocSetContextCreate(CurrentMemoryContext, "lockfence survey",
										  ALLOCSET_SMALL_SIZES);
	initStringInfo(&survey.last_name);
	tables = is_sample ? list_make1_oid(target) : find_all_inheritors(target, AccessShareLock, NULL);
	foreach(table, tables)
		survey_relation(&survey, lfirst_oid(table));
	return (Datum) 0;
}
