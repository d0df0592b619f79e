/*
 * rowmark.c
 *		The mark of one row of a row fence: read, set.
 *
 * Administrators call this on tables of other owners.  So everything that an owner
 * may have defined (domain checks, operators, triggers, index expressions) runs as
 * the owner, in a security-restricted operation, under a search path that the
 * caller cannot choose either.  Row security that would hide the row is an error.
 *
 * The mark is set by an UPDATE, so that triggers see it: a tool that copies a table
 * by a trigger would lose a mark that was written past it.  The row is locked
 * first, which waits for the transaction that wrote it last.  The guard then
 * admits the new version of that one row with that one token, and no other write
 * of a trigger.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"

#include "advances.h"
#include "args.h"
#include "asowner.h"
#include "durable.h"
#include "epoch.h"
#include "fence.h"
#include "fencecache.h"
#include "fencedef.h"
#include "guarded.h"
#include "jsonvalue.h"
#include "keyrow.h"
#include "lockfence.h"
#include "refuse.h"
#include "rowmark.h"
#include "rows.h"
#include "rowtokens.h"
#include "token.h"
#include "visible.h"

/* The one change of a row that the guard must admit. */
typedef struct AdmittedMark
{
	Oid			relid;
	ItemPointerData tid;
	FenceToken	token;
} AdmittedMark;

PG_FUNCTION_INFO_V1(lockfence_set_row_mark);
PG_FUNCTION_INFO_V1(lockfence_is_row_current);

bool		lockfence_sets_row_mark = false;
static AdmittedMark admitted;

/* The fence of a table, which must be a row fence. */
const Fence *
lockfence_require_row_fence(Relation rel)
{
	const Fence *fence = NULL;

	/* a view can have triggers of the same name */
	if (rel->rd_rel->relkind == RELKIND_RELATION ||
		rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		fence = lockfence_relation_fence(rel);
	if (fence == NULL || fence->resource != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no row fence", lockfence_visible(RelationGetRelationName(rel))),
				 errdetail("Only the rows of a row fence have marks of their own."),
				 errhint("If the fence names its resources, give the name instead; lockfence.resource_of() returns the name for a row."),
				 errtable(rel)));
	return fence;
}

/* Is this an administrator's write of a mark?  Called only if lockfence_sets_row_mark. */
bool
lockfence_admits_row_mark(const RowGuard *guard)
{
	return guard->old != NULL && guard->new != NULL &&
		RelationGetRelid(guard->rel) == admitted.relid &&
		guard->fence->token_attno != 0 &&
		ItemPointerEquals(&guard->trigger->tg_trigtuple->t_self, &admitted.tid) &&
		lockfence_stored_token(guard->fence, guard->new) == admitted.token;
}

/* Run the UPDATE of one row. */
static void
run_update(const char *statement, Oid *types, Datum *values)
{
	int			result = SPI_execute_with_args(statement, 2, types, values, NULL, false, 0);

	if (result != SPI_OK_UPDATE_RETURNING)
		elog(ERROR, "\"%s\" failed: %s", statement, SPI_result_code_string(result));
}

/* Raise the error for a mark that a trigger has dropped or changed. */
void
lockfence_refuse_lost_mark(Relation holder, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
			 errmsg("a trigger of table \"%s\" keeps the mark of the row from being set",
					lockfence_visible(RelationGetRelationName(holder))),
			 errhint("%s", hint),
			 errtable(holder)));
}

/* Write the mark into the locked row; returns whether the row has it then. */
static bool
update_row(Relation holder, const char *column, ItemPointer tid, FenceToken token)
{
	const char *quoted = quote_identifier(column);
	Oid			types[] = {INT8OID, TIDOID};
	Datum		values[] = {Int64GetDatum(token), PointerGetDatum(tid)};
	bool		isnull = true;
	bool		written;

	SPI_connect();
	run_update(psprintf("UPDATE ONLY %s SET %s = $1 WHERE ctid OPERATOR(pg_catalog.=) $2 RETURNING %s",
						lockfence_table_in_sql(holder), quoted, quoted),
			   types, values);
	written = SPI_processed == 1 &&
		DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc,
									1, &isnull)) == token && !isnull;
	SPI_finish();
	return written;
}

/* The same, past the guard.  Must be called as the owner of the table. */
static void
write_mark(Relation holder, TupleTableSlot *row, FenceToken token)
{
	const char *column = lockfence_require_row_fence(holder)->token_column;
	bool		written = false;

	admitted = (AdmittedMark) {RelationGetRelid(holder), row->tts_tid, token};
	lockfence_sets_row_mark = true;
	PG_TRY();
	{
		written = update_row(holder, column, &row->tts_tid, token);
	}
	PG_FINALLY();
	{
		lockfence_sets_row_mark = false;
	}
	PG_END_TRY();
	if (!written)
		lockfence_refuse_lost_mark(holder, "Disable the trigger, or set the mark by an UPDATE under lockfence.bypass.");
	lockfence_commit_durably();
}

/* Read target, key and token.  The caller ends with lockfence_end_row_call(). */
RowCall
lockfence_begin_row_call(FunctionCallInfo fcinfo, LOCKMODE mode)
{
	RowCall		call = {0};
	Jsonb	   *key;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("target must not be null")));
	key = lockfence_require_jsonb(fcinfo, 1, "key");
	lockfence_require_token(fcinfo, 2);
	call.token = PG_GETARG_INT64(2);
	call.target = lockfence_open_table(PG_GETARG_OID(0), mode);
	call.fence = lockfence_require_row_fence(call.target);
	call.keys = lockfence_given_columns(call.target, key, "key", &call.nkeys);
	return call;
}

/* The key must identify one row, as far as that is known before it is looked for. */
static void
require_unique_key(const RowCall *call)
{
	int			nunique;

	if (lockfence_unique_key(call->target, call->keys, call->nkeys, &nunique) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the key does not identify one row of table \"%s\"",
						lockfence_visible(RelationGetRelationName(call->target))),
				 errdetail("It must have all columns of the primary key, or of another unique key whose columns are NOT NULL."),
				 errtable(call->target)));
}

/* Look for the row; false if there is none. */
bool
lockfence_find_row(RowCall *call, bool lock)
{
	FormerSelf	self = lockfence_become_owner(call->target, true);
	List	   *rows;

	lockfence_convert_columns(call->target, call->keys, call->nkeys);
	require_unique_key(call);
	rows = lockfence_rows_with_key(call->target, call->keys, call->nkeys, lock);
	lockfence_come_back(self);
	if (list_length(rows) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_CARDINALITY_VIOLATION),
				 errmsg("more than one row of table \"%s\" has the key",
						lockfence_visible(RelationGetRelationName(call->target))),
				 errhint("Name the inheritance child that has the row."),
				 errtable(call->target)));
	if (rows != NIL)
		call->row = lockfence_fetch_row((KeyRow *) linitial(rows), lock ? RowExclusiveLock : AccessShareLock,
										&call->holder);
	return call->row != NULL;
}

/* Raise the error for a key that no row has. */
void
lockfence_refuse_no_row(const RowCall *call)
{
	ereport(ERROR,
			(errcode(ERRCODE_NO_DATA_FOUND),
			 errmsg("no row of table \"%s\" has the key",
					lockfence_visible(RelationGetRelationName(call->target))),
			 errtable(call->target)));
}

void
lockfence_end_row_call(RowCall *call)
{
	if (call->row != NULL)
		lockfence_drop_row(call->row, call->holder);
	table_close(call->target, NoLock);
}

/* Set the mark, unless lower is false and the new one is not higher.  Returns the row's name as in refusals. */
static char *
set_mark(const RowCall *call, FenceToken before, bool lower)
{
	FormerSelf	self;
	char	   *name;

	self = lockfence_become_owner(call->holder, true);
	name = lockfence_row_name(call->holder, call->row);
	if (lower ? before != call->token : lockfence_compare(call->token, before) == HIGHER)
	{
		write_mark(call->holder, call->row, call->token);
		lockfence_note_row_advance(call->holder, call->row,
								   (MarkChange) {before, call->token, lower ? BY_RESET_MARK : BY_RAISE_MARK});
	}
	lockfence_come_back(self);
	return name;
}

/*
 * _set_row_mark(target, key, token, lower, OUT resource, OUT before): sets the
 * mark of one row, to a lower token only if lower is true; before is null if the
 * row had no mark.
 */
Datum
lockfence_set_row_mark(PG_FUNCTION_ARGS)
{
	RowCall		call;
	FenceToken	before;
	Datum		values[2];
	bool		isnull[2] = {false};

	PreventCommandIfReadOnly("a change of a fence's mark");
	call = lockfence_begin_row_call(fcinfo, RowExclusiveLock);
	if (!lockfence_find_row(&call, true))
		lockfence_refuse_no_row(&call);
	before = lockfence_stored_token(lockfence_require_row_fence(call.holder), call.row);
	values[0] = CStringGetTextDatum(set_mark(&call, before, PG_GETARG_BOOL(3)));
	values[1] = Int64GetDatum(before);
	isnull[1] = before == 0;
	lockfence_end_row_call(&call);
	PG_RETURN_DATUM(lockfence_return_row(fcinfo, values, isnull));
}

/* The caller must have the privileges of a SELECT that would tell the same. */
static void
require_select(const RowCall *call)
{
	Relation	rel = call->target;
	GivenColumn token = {.attno = call->fence->token_attno};

	lockfence_require_column_privileges(rel, ACL_SELECT, 1, &token);
	lockfence_require_column_privileges(rel, ACL_SELECT, call->nkeys, call->keys);
	if (check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("row-level security of table \"%s\" may hide the row",
						lockfence_visible(RelationGetRelationName(rel))),
				 errhint("Select column \"%s\" of the row instead.",
						 lockfence_visible(call->fence->token_column)),
				 errtable(rel)));
}

/*
 * is_current(target, key, token): advice, without a lock on the row; null if there
 * is no such row.  PUBLIC may execute it, so the caller's privilege to read the
 * table is checked before anything of the table is touched, even its lock.
 */
Datum
lockfence_is_row_current(PG_FUNCTION_ARGS)
{
	RowCall		call;
	bool		found;
	bool		current = false;

	if (!PG_ARGISNULL(0))
		lockfence_require_any_privilege(PG_GETARG_OID(0), ACL_SELECT);
	call = lockfence_begin_row_call(fcinfo, AccessShareLock);
	require_select(&call);
	found = lockfence_find_row(&call, false);
	if (found)
		current = lockfence_would_pass(call.token, lockfence_stored_token(lockfence_require_row_fence(call.holder), call.row),
									   call.fence->single_use);
	lockfence_end_row_call(&call);
	if (!found)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(current);
}
