/*
 * admin.c
 *		Administrative changes of marks, for the SQL functions that audit them.
 *
 * The SQL functions check privileges and write the audit log; each function here
 * does the one step that needs the resource's lock.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "advances.h"
#include "args.h"
#include "check.h"
#include "durable.h"
#include "fence.h"
#include "lockfence.h"
#include "lockwait.h"
#include "mark.h"
#include "marklock.h"
#include "refuse.h"
#include "reslock.h"
#include "resource.h"
#include "xact.h"

PG_FUNCTION_INFO_V1(lockfence_reset_mark);
PG_FUNCTION_INFO_V1(lockfence_fold_mark);
PG_FUNCTION_INFO_V1(lockfence_raise_mark_sql);
PG_FUNCTION_INFO_V1(lockfence_guard_mark);
PG_FUNCTION_INFO_V1(lockfence_guard_marks);

/*
 * Read the mark under the resource's exclusive lock, after waiting for transactions
 * that hold or change it.  The caller ends the scan and releases the lock.
 */
static void
lock_mark(MarkScan *scan, const ResourceKey *resource)
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		lockfence_lock_exclusive(resource);
		lockfence_mark_begin(scan, resource);
		if (!TransactionIdIsValid(scan->changing) && lockfence_wait_for_lockers(scan))
			return;
		lockfence_mark_end(scan);
		lockfence_release_exclusive(resource);
		if (TransactionIdIsValid(scan->changing))
			lockfence_wait_for_end(scan->changing, resource);
	}
}

/* _reset_mark(resource, token): up or down; returns the former mark, or null */
Datum
lockfence_reset_mark(PG_FUNCTION_ARGS)
{
	char	   *resource = lockfence_require_resource(fcinfo, 0);
	MarkScan	scan;
	ResourceKey key;

	lockfence_require_token(fcinfo, 1);
	PreventCommandIfReadOnly("a change of a fence's mark");

	lockfence_set_resource_key(&key, resource);
	lock_mark(&scan, &key);
	lockfence_mark_write(&scan, PG_GETARG_INT64(1));
	lockfence_forget_token(resource);
	lockfence_note_change(&key, (MarkChange) {scan.token, PG_GETARG_INT64(1), BY_RESET_MARK});
	lockfence_mark_end(&scan);
	lockfence_release_exclusive(&key);
	lockfence_commit_durably();

	if (!scan.found)
		PG_RETURN_NULL();
	PG_RETURN_INT64(scan.token);
}

/*
 * _raise_mark(resource, token): up only; returns the former mark or else the floor,
 * or null.  The mark went up if that is lower than the token.
 */
Datum
lockfence_raise_mark_sql(PG_FUNCTION_ARGS)
{
	char	   *resource = lockfence_require_resource(fcinfo, 0);
	FenceToken	before;

	lockfence_require_token(fcinfo, 1);
	(void) lockfence_raise_mark(resource, PG_GETARG_INT64(1), BY_RAISE_MARK, &before);
	if (before == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(before);
}

/*
 * _fold_mark(resource, token): removes a mark that still is that token and that no
 * transaction holds or changes; returns whether it did.  The caller raises the floor
 * over it in the same transaction.
 */
Datum
lockfence_fold_mark(PG_FUNCTION_ARGS)
{
	char	   *resource = lockfence_require_resource(fcinfo, 0);
	FenceToken	token = PG_GETARG_INT64(1);
	bool		folded;
	MarkScan	scan;
	ResourceKey key;

	PreventCommandIfReadOnly("lockfence.prune()");
	lockfence_set_resource_key(&key, resource);
	if (!lockfence_try_exclusive(&key))
		PG_RETURN_BOOL(false);
	lockfence_mark_begin(&scan, &key);
	folded = scan.found && scan.token == token && !TransactionIdIsValid(scan.changing) &&
		lockfence_mark_lockers(&scan) == NIL;
	if (folded)
		lockfence_mark_remove(&scan);
	lockfence_mark_end(&scan);
	lockfence_release_exclusive(&key);
	lockfence_commit_durably();

	PG_RETURN_BOOL(folded);
}

/* Raise the error for DML on the marks that could let a stale holder in. */
static void
refuse_dml(Relation rel, const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNFENCEABLE_OPERATION),
			 errmsg("cannot %s lockfence.mark", what),
			 errdetail("Without the mark, or with a lower one, stale tokens would be accepted."),
			 errhint("%s", hint),
			 errtable(rel)));
}

/* Check that the values which DML writes are a mark. */
static void
require_mark(Relation rel, const char *resource, FenceToken token)
{
	FencedWrite write = {.rel = rel,.resource = resource};

	if (token <= 0)
		lockfence_refuse_invalid(&write, false, token);
	if (resource[0] == '\0' || strlen(resource) > LOCKFENCE_MAX_RESOURCE_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("resource name must be 1 to %d bytes long",
						LOCKFENCE_MAX_RESOURCE_LEN),
				 errtable(rel)));
}

/* A column of a mark that DML writes. */
static Datum
mark_column(TriggerData *trigger, HeapTuple tuple, const char *column)
{
	TupleDesc	tupdesc = RelationGetDescr(trigger->tg_relation);
	bool		isnull;
	Datum		value = heap_getattr(tuple, SPI_fnumber(tupdesc, column), tupdesc, &isnull);

	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("null value in column \"%s\" of a mark", column),
				 errtable(trigger->tg_relation)));
	return value;
}

/*
 * Row trigger on lockfence.mark, for DML on it nevertheless: a data restore, logical
 * replication, a superuser.  A row that is inserted or updated raises the mark that
 * it names, and is not stored; nothing lowers or removes a mark.
 */
Datum
lockfence_guard_mark(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	HeapTuple	tuple;
	FenceToken	token;
	FenceToken	before;
	AdvanceWay	way;
	char	   *resource;

	lockfence_require_trigger(fcinfo);
	if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
	{
		if (IsLogicalWorker())
			return PointerGetDatum(NULL);
		refuse_dml(trigger->tg_relation, "delete from",
				   "Use lockfence.prune() to fold old marks into the floor.");
	}

	tuple = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newtuple : trigger->tg_trigtuple;
	token = DatumGetInt64(mark_column(trigger, tuple, "token"));
	resource = TextDatumGetCString(mark_column(trigger, tuple, "resource"));
	require_mark(trigger->tg_relation, resource, token);
	way = IsLogicalWorker() ? BY_REPLICATION : BY_RESTORE;
	if (!lockfence_raise_mark(resource, token, way, &before) && !IsLogicalWorker() &&
		TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
		refuse_dml(trigger->tg_relation, "lower a mark in",
				   "Use lockfence.reset_mark(resource, token, reason).");
	return PointerGetDatum(NULL);
}

/* Statement trigger on lockfence.mark: BEFORE TRUNCATE. */
Datum
lockfence_guard_marks(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	lockfence_require_trigger(fcinfo);
	refuse_dml(trigger->tg_relation, "truncate",
			   "Use lockfence.prune() to fold old marks into the floor.");
	return PointerGetDatum(NULL);
}
