/*
 * lease.c
 *		The only reader and writer of lockfence.lease, the table of
 *		lockfence_lease.
 *
 * The functions that grant, renew and release are SQL (sql/lease/).  This file does
 * what SQL cannot: it reads and writes a row as it was committed last, whatever
 * snapshot the transaction has.  By its own snapshot, a REPEATABLE READ transaction
 * would not find a lease that was acquired after it began, and would fail with 40001
 * if the row has changed since.  A SERIALIZABLE one would fail for a mere read.
 *
 * Only a transaction that has locked a row changes it.  Only a grant inserts a row,
 * after it has raised the mark of the resource.  One transaction at a time can do
 * that, so two never insert the same row.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "args.h"
#include "check.h"
#include "fence.h"
#include "instant.h"
#include "intact.h"
#include "issue.h"
#include "latest.h"
#include "lease.h"
#include "mark.h"
#include "refuse.h"
#include "relation.h"
#include "stats.h"

PG_FUNCTION_INFO_V1(lockfence_find_lease);
PG_FUNCTION_INFO_V1(lockfence_lock_lease);
PG_FUNCTION_INFO_V1(lockfence_find_mark);
PG_FUNCTION_INFO_V1(lockfence_issue_grant_sql);
PG_FUNCTION_INFO_V1(lockfence_put_lease);
PG_FUNCTION_INFO_V1(lockfence_refuse_lease);
PG_FUNCTION_INFO_V1(lockfence_count_declined);

/* The row of the resource as it was committed last, or by this transaction; NULL: none. */
static HeapTuple
find_lease(Relation rel, const char *resource)
{
	LatestScan	scan;
	ScanKeyData key;
	HeapTuple	tuple;

	lockfence_require_readable(rel);
	ScanKeyInit(&key, LEASE_ATTNO_RESOURCE, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(resource));
	lockfence_latest_begin(&scan, rel, lockfence_relation_oid("lease_pkey"), 1, &key);
	tuple = lockfence_latest_next(&scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	lockfence_latest_end(&scan);
	return tuple;
}

/* The same as find_lease(), and lock the row, so that no other transaction changes it. */
static HeapTuple
lock_lease(Relation rel, const char *resource, LockWaitPolicy policy)
{
	HeapTuple	tuple;

	PreventCommandIfReadOnly("a change of a lease");
	/* a version of this very command could not be locked */
	CommandCounterIncrement();
	do
	{
		CHECK_FOR_INTERRUPTS();
		tuple = find_lease(rel, resource);
	} while (tuple != NULL &&
			 !lockfence_latest_lock(rel, &tuple->t_self, LockTupleNoKeyExclusive, policy));
	return tuple;
}

/* The row as a value, or null. */
static Datum
return_lease(FunctionCallInfo fcinfo, Relation rel, HeapTuple tuple)
{
	if (tuple == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(heap_copy_tuple_as_datum(tuple, RelationGetDescr(rel)));
}

/* _find_lease(resource): its row, or null; leaves nothing behind, so that the caller can wait and read again */
Datum
lockfence_find_lease(PG_FUNCTION_ARGS)
{
	char	   *resource = lockfence_require_resource(fcinfo, 0);
	Relation	rel = lockfence_open_relation("lease", AccessShareLock);
	Datum		row = return_lease(fcinfo, rel, find_lease(rel, resource));

	table_close(rel, AccessShareLock);
	return row;
}

/* _lock_lease(resource, no_wait): the same row, locked to the end of this transaction */
Datum
lockfence_lock_lease(PG_FUNCTION_ARGS)
{
	char	   *resource = lockfence_require_resource(fcinfo, 0);
	Relation	rel = lockfence_open_relation("lease", RowExclusiveLock);
	Datum		row = return_lease(fcinfo, rel,
								   lock_lease(rel, resource, PG_GETARG_BOOL(1) ? LockWaitError : LockWaitBlock));

	table_close(rel, NoLock);
	return row;
}

/* The token of the last grant on record; 0: there is none. */
static FenceToken
last_grant(const char *resource)
{
	Relation	rel = lockfence_open_relation("lease", AccessShareLock);
	HeapTuple	tuple = find_lease(rel, resource);
	FenceToken	token = 0;
	bool		isnull;

	if (tuple != NULL)
		token = DatumGetInt64(heap_getattr(tuple, LEASE_ATTNO_TOKEN, RelationGetDescr(rel), &isnull));
	table_close(rel, AccessShareLock);
	return token;
}

/*
 * Issue the token of a grant: the next one, and above that of the last grant.  An
 * administrator may have lowered the mark or the floor since, or a restore may have
 * brought the grant without its mark.  Then the next token would have been issued
 * before, and the last grant's holder would not be stale.  While the mark is raised
 * by this transaction, no other can put a grant on record.
 */
FenceToken
lockfence_issue_grant(const char *resource, IssueTerms terms)
{
	FenceToken	token = lockfence_issue_token(resource, terms);
	FenceToken	last = last_grant(resource);
	FenceToken	before;

	if (token > last)
		return token;
	(void) lockfence_raise_mark(resource, last, BY_ISSUE, &before);
	return lockfence_issue_token(resource, (IssueTerms) {0});
}

/* _find_mark(resource): as it was committed last, or null */
Datum
lockfence_find_mark(PG_FUNCTION_ARGS)
{
	FenceToken	mark = lockfence_mark_peek(lockfence_require_resource(fcinfo, 0));

	if (mark == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(mark);
}

/* _issue_grant(resource, mark, no_wait): its token, if the mark is still that one (null: there is none) */
Datum
lockfence_issue_grant_sql(PG_FUNCTION_ARGS)
{
	IssueTerms	terms = {
		.only_if_mark = true,
		.mark = PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1),
		.no_wait = PG_GETARG_BOOL(2)
	};

	PG_RETURN_INT64(lockfence_issue_grant(lockfence_require_resource(fcinfo, 0), terms));
}

/* Write the row of the resource, in place of the one that exists. */
void
lockfence_write_lease(const char *resource, const NullableDatum *columns)
{
	Relation	rel = lockfence_open_relation("lease", RowExclusiveLock);
	HeapTuple	before = lock_lease(rel, resource, LockWaitBlock);
	HeapTuple	tuple = lockfence_form_row(rel, columns, LEASE_NATTS);
	CatalogIndexState indexes;

	lockfence_require_intact(rel);
	indexes = lockfence_open_indexes(rel);
	if (before != NULL)
		CatalogTupleUpdateWithInfo(rel, &before->t_self, tuple, indexes);
	else
		CatalogTupleInsertWithInfo(rel, tuple, indexes);
	CatalogCloseIndexes(indexes);
	CommandCounterIncrement();
	table_close(rel, NoLock);
}

/* When the lease with that token ends; false: there is none, or a release has ended it. */
bool
lockfence_lease_end(const char *resource, FenceToken token, TimestampTz *end)
{
	Relation	rel;
	HeapTuple	tuple;
	Datum		values[LEASE_NATTS];
	bool		isnull[LEASE_NATTS];
	bool		found;

	if (!lockfence_relation_exists("lease"))
		return false;
	rel = lockfence_open_relation("lease", AccessShareLock);
	tuple = find_lease(rel, resource);
	if (tuple != NULL)
		heap_deform_tuple(tuple, RelationGetDescr(rel), values, isnull);
	found = tuple != NULL && DatumGetInt64(values[LEASE_ATTNO_TOKEN - 1]) == token &&
		!isnull[LEASE_ATTNO_EXPIRES_AT - 1] && !isnull[LEASE_ATTNO_OWNER - 1];
	if (found)
		*end = lockfence_limit_at(DatumGetTimestampTz(values[LEASE_ATTNO_EXPIRES_AT - 1]));
	table_close(rel, AccessShareLock);
	return found;
}

/* _put_lease(token, granted_at, expires_at, resource, owner): writes the row of the resource */
Datum
lockfence_put_lease(PG_FUNCTION_ARGS)
{
	lockfence_write_lease(lockfence_require_resource(fcinfo, LEASE_ATTNO_RESOURCE - 1), fcinfo->args);
	PG_RETURN_VOID();
}

/* _refuse_lease(resource, token, owner, granted): LF001; the token, or the owner, does not have the lease */
Datum
lockfence_refuse_lease(PG_FUNCTION_ARGS)
{
	FencedWrite write = {.resource = lockfence_require_resource(fcinfo, 0)};
	FenceToken	token = PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1);
	char	   *owner = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));

	if (PG_GETARG_BOOL(3))
		lockfence_refuse_lapsed(&write, token, owner);
	else
		lockfence_refuse_ungranted(&write, token, owner);
	PG_RETURN_VOID();
}

/* _count_declined(): another holder has the lease that was asked for */
Datum
lockfence_count_declined(PG_FUNCTION_ARGS)
{
	lockfence_count(NULL, LOCKFENCE_DECLINED);
	PG_RETURN_VOID();
}
