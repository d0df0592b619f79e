/*
 * lockwait.c
 *		Holding a mark that was read, and waiting for the transactions in the way of
 *		its change, with what an advance does about them.
 *
 * A transaction comes to hold only after it read a mark equal to its token, and
 * the tokens of a mark go up.  So a transaction that holds a resource while its
 * mark is known to be lower than an advancing token has presented a lower one
 * too: it is a stale holder.  Transactions with the same new token as the
 * advance are never among them: they wait in the same queue.  A stale holder may
 * be ended; see preempt.c.
 *
 * Nothing here waits while it has a page of the marks pinned: VACUUM may wait for
 * the backend that has one, which neither lock_timeout nor a deadlock check sees.
 */
#include "postgres.h"

#include "access/subtrans.h"
#include "access/transam.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"

#include "check.h"
#include "compat.h"
#include "lockfence.h"
#include "lockwait.h"
#include "mark.h"
#include "marklock.h"
#include "preempt.h"
#include "readable.h"
#include "reslock.h"
#include "resource.h"
#include "settings.h"
#include "token.h"
#include "visible.h"

/* A preempted holder gets this long, in milliseconds, to be gone, twice. */
#define PREEMPT_GRACE_MS	500

/* While an advance waits, deadlock checks are left to the lower tokens. */
#define DEADLOCK_PATIENCE	10

/* What an error that ends a wait should say. */
typedef struct WaitReport
{
	const char *resource;		/* as the caller may see it */
	char	   *gid;			/* prepared transaction in the way, or NULL */
	bool		no_wait;		/* fail instead */
} WaitReport;

/* Fail at once where the caller does not want to wait, as NOWAIT does. */
static void
refuse_wait(const char *resource)
{
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not obtain lock on resource \"%s\"", resource)));
}

/*
 * An advisory fence neither waits for other transactions nor ends them: it fails, which
 * it reports.
 */
static void
require_patience(const FenceCheck *check)
{
	if (check->write.advisory)
		refuse_wait(lockfence_readable_resource(&check->write));
}


/* For the wait of a check; the caller looks for a prepared transaction. */
static WaitReport
wait_report(const FenceCheck *check)
{
	return (WaitReport) {
		.resource = lockfence_readable_resource(&check->write),
		.no_wait = check->no_wait
	};
}

/* Say what was waited for, in the error that ends the wait. */
static void
report_wait(void *arg)
{
	WaitReport *report = (WaitReport *) arg;

	errcontext("while waiting for other holders of resource \"%s\"",
			   report->resource);
	if (report->gid != NULL)
		errhint("Prepared transaction \"%s\" holds the resource and cannot be preempted. Use COMMIT PREPARED or ROLLBACK PREPARED to end it.",
				lockfence_visible(report->gid));
}

/* Wait to hold the resource, where that could not be had at once. */
void
lockfence_await_hold(ResourceHold *hold, const FenceCheck *check)
{
	require_patience(check);
	lockfence_wait_for_hold(hold);
}

/*
 * Hold the resource if the mark still is what was read.  After a wait, this looks at
 * the mark again.
 */
static bool
hold_if_unchanged(ResourceHold *hold, MarkScan *scan, const FenceCheck *check, bool briefly)
{
	if (!lockfence_try_hold(hold, scan->resource, briefly))
	{
		lockfence_mark_unpin(scan);
		lockfence_await_hold(hold, check);
	}
	if (lockfence_mark_unchanged(scan) && lockfence_grant_hold(hold))
		return true;
	lockfence_release_hold(hold);
	return false;
}

/* Hold the resource of a mark that was read; false if the mark has changed since. */
bool
lockfence_hold_mark(MarkScan *scan, const FenceCheck *check)
{
	ResourceHold hold;

	return hold_if_unchanged(&hold, scan, check, false);
}

/* The first column of a query's first row, or NULL. */
static char *
query_text(const char *query, int nargs, Oid *types, Datum *values)
{
	MemoryContext caller = CurrentMemoryContext;
	char	   *result = NULL;

	SPI_connect();
	if (SPI_execute_with_args(query, nargs, types, values, NULL, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look up prepared transactions");
	if (SPI_processed > 0)
	{
		char	   *value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);

		result = value ? MemoryContextStrdup(caller, value) : NULL;
	}
	SPI_finish();
	return result;
}

/* The identifier of a prepared transaction that holds the resource, or NULL. */
static char *
prepared_holder(const ResourceKey *resource)
{
	LOCKTAG		tag = lockfence_resource_tag(resource);
	Oid			types[] = {OIDOID, OIDOID, OIDOID, INT2OID};
	Datum		values[] = {
		ObjectIdGetDatum(tag.locktag_field1), ObjectIdGetDatum(tag.locktag_field2),
		ObjectIdGetDatum(tag.locktag_field3), Int16GetDatum(tag.locktag_field4)
	};

	if (max_prepared_xacts == 0)
		return NULL;
	return query_text("SELECT gid FROM lockfence.prepared_holds"
					  " WHERE database OPERATOR(pg_catalog.=) $1"
					  " AND classid OPERATOR(pg_catalog.=) $2"
					  " AND objid OPERATOR(pg_catalog.=) $3"
					  " AND objsubid OPERATOR(pg_catalog.=) $4",
					  4, types, values);
}

/* The identifier of the prepared transaction with that xid, or NULL. */
static char *
prepared_transaction(TransactionId xid)
{
	Oid			types[] = {XIDOID};
	Datum		values[] = {TransactionIdGetDatum(xid)};

	if (max_prepared_xacts == 0)
		return NULL;
	return query_text("SELECT gid FROM pg_catalog.pg_prepared_xacts"
					  " WHERE transaction OPERATOR(pg_catalog.=) $1",
					  1, types, values);
}

/*
 * The backends that hold the resource by a token lower than that of an advance
 * which read the mark as the scan shows it.  The mark may have gone up since it
 * was read, and then the holders may be those that are to hold it now.  So look
 * at the mark once more, after the holders: each of them had read it before.
 */
static List *
stale_holders(MarkScan *scan)
{
	List	   *pids = lockfence_holder_pids(scan->resource);
	bool		unchanged = scan->found && lockfence_mark_unchanged(scan);

	lockfence_mark_unpin(scan);
	return unchanged ? pids : NIL;
}

/* Sleep between two attempts at a lock: 1 ms, growing to 10 ms. */
static void
sleep_before_retry(int attempt)
{
	CHECK_FOR_INTERRUPTS();
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Min(attempt, 10), PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/*
 * While the preempted transactions end, try for the resource's lock or, where
 * there is no resource, for the end of a transaction.
 *
 * These are attempts and not a wait, so lock_timeout, the deadlock check and
 * pg_blocking_pids() see none of it.  That is meant, and is over with the grace: in
 * the lock's queue this transaction would deadlock at once with a victim that waits
 * for it, and would be the one to be told so, though the victim is ending already.
 * What waits for long is the wait in the queue that follows (wait_for()).
 */
static bool
try_within_grace(const ResourceKey *resource, TransactionId xid)
{
	TimestampTz start = GetCurrentTimestamp();

	for (int attempt = 1;
		 !TimestampDifferenceExceeds(start, GetCurrentTimestamp(), PREEMPT_GRACE_MS);
		 attempt++)
	{
		if (resource != NULL ? lockfence_try_exclusive(resource) :
			!TransactionIdIsInProgress(xid))
			return true;
		sleep_before_retry(attempt);
	}
	return false;
}

/* Preempt the stale holders, and try for the lock until the grace is over. */
static bool
lock_by_preemption(const FenceCheck *check, MarkScan *scan)
{
	for (int round = 0; round < 2; round++)
	{
		if (!lockfence_preempt_holders(stale_holders(scan), round > 0, check))
			return false;
		if (try_within_grace(scan->resource, InvalidTransactionId))
			return true;
	}
	return false;
}

/* Warn once that a prepared transaction makes preemption impossible. */
static void
warn_of_prepared(const WaitReport *report)
{
	if (report->gid != NULL && lockfence_preempt)
		ereport(WARNING,
				(errmsg("waiting for prepared transaction \"%s\", which holds resource \"%s\"",
						lockfence_visible(report->gid), report->resource),
				 errhint("A prepared transaction cannot be preempted. Use COMMIT PREPARED or ROLLBACK PREPARED to end it.")));
}

/*
 * Wait for the exclusive lock or, where there is no resource, for the end of a
 * transaction.  An error that ends the wait tells what was waited for.
 *
 * A higher token's wait for a lower one is patient: it checks for deadlocks so
 * late that the lower one, if it closes a circle, finds that out first and is
 * the victim.
 */
static void
wait_for(const ResourceKey *resource, TransactionId xid, WaitReport *report, bool patient)
{
	ErrorContextCallback callback = {
		.previous = error_context_stack,
		.callback = report_wait,
		.arg = report
	};
	int			deadlock_timeout = DeadlockTimeout;

	if (report->no_wait)
		refuse_wait(report->resource);
	error_context_stack = &callback;
	if (patient && DeadlockTimeout <= INT_MAX / DEADLOCK_PATIENCE)
		DeadlockTimeout *= DEADLOCK_PATIENCE;
	PG_TRY();
	{
		if (resource != NULL)
			lockfence_wait_for_exclusive(resource);
		else
			XactLockTableWait(xid, NULL, NULL, XLTW_None);
	}
	PG_FINALLY();
	{
		DeadlockTimeout = deadlock_timeout;
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
}

/* Lock the resource to change its mark by hand; waits for all holders. */
void
lockfence_lock_exclusive(const ResourceKey *resource)
{
	WaitReport	report = {.resource = lockfence_visible(resource->name)};

	if (lockfence_try_exclusive(resource))
		return;
	report.gid = prepared_holder(resource);
	wait_for(resource, InvalidTransactionId, &report, false);
}

/*
 * Lock the resource for a higher token than the scan shows, which may end stale
 * holders.  Returns false, and no lock, if the mark is seen to have changed.
 */
bool
lockfence_lock_for_advance(const FenceCheck *check, MarkScan *scan)
{
	const ResourceKey *resource = scan->resource;
	WaitReport	report;

	if (lockfence_try_exclusive(resource))
		return true;
	lockfence_mark_unpin(scan);
	require_patience(check);
	if (lockfence_preempt && lock_by_preemption(check, scan))
		return true;

	/*
	 * If this transaction holds the resource too, PostgreSQL would find a
	 * deadlock at once if it queued up before the victims are gone.
	 */
	if (lockfence_break_deadlocks(stale_holders(scan), check) &&
		try_within_grace(resource, InvalidTransactionId))
		return true;
	if (scan->found && !lockfence_mark_unchanged(scan))
		return false;
	lockfence_mark_unpin(scan);
	report = wait_report(check);
	report.gid = prepared_holder(resource);
	warn_of_prepared(&report);
	wait_for(resource, InvalidTransactionId, &report, true);
	return true;
}

/* The backend that runs the transaction, or 0. */
static int
xid_pid(TransactionId xid)
{
	return BackendXidGetPid(SubTransGetTopmostTransaction(xid));
}

/* Wait for the end of a transaction that holds the resource by its xid. */
static void
wait_for_xid(TransactionId xid, WaitReport report, bool stale)
{
	report.gid = prepared_transaction(SubTransGetTopmostTransaction(xid));
	if (stale)
		warn_of_prepared(&report);
	wait_for(NULL, xid, &report, stale);
}

/* Just wait for the end of a transaction that changes the mark, or holds it. */
void
lockfence_wait_for_end(TransactionId xid, const ResourceKey *resource)
{
	wait_for_xid(xid, (WaitReport) {.resource = lockfence_visible(resource->name)}, false);
}

/*
 * Wait for the transactions that hold the mark by a lock on its tuple, which the
 * caller is about to change or to lock: that would wait for them with its page
 * pinned.  Under the exclusive lock no more of them can come.  Returns whether the
 * scan still shows the mark.
 */
bool
lockfence_wait_for_lockers(MarkScan *scan)
{
	List	   *lockers = scan->found ? lockfence_mark_lockers(scan) : NIL;
	ListCell   *cell;

	if (lockers == NIL)
		return true;
	lockfence_mark_unpin(scan);
	foreach(cell, lockers)
		lockfence_wait_for_end((TransactionId) lfirst_oid(cell), scan->resource);
	return lockfence_mark_unchanged(scan);
}

/*
 * Hold the resource of a mark that was read by a lock on the mark's row; it is held
 * briefly until that is there.  False if the mark has changed, or is to be read again.
 */
bool
lockfence_hold_by_tuple(MarkScan *scan, const FenceCheck *check)
{
	ResourceHold hold;
	TM_Result	result;

	if (!hold_if_unchanged(&hold, scan, check, true))
		return false;
	result = lockfence_mark_lock_tuple(scan);
	lockfence_release_hold(&hold);
	if (result == TM_WouldBlock)
	{
		require_patience(check);
		(void) lockfence_wait_for_lockers(scan);
	}
	return result == TM_Ok;
}

/* Preempt a stale holder, or end it where it would make a deadlock. */
void
lockfence_settle_stale(TransactionId xid, const FenceCheck *check)
{
	int			pid = xid_pid(xid);
	List	   *pids = pid != 0 ? list_make1_int(pid) : NIL;

	for (int round = 0; lockfence_preempt && round < 2; round++)
	{
		if (!TransactionIdIsInProgress(xid) ||
			!lockfence_preempt_holders(pids, round > 0, check))
			break;
		(void) try_within_grace(NULL, xid);
	}
	(void) lockfence_break_deadlocks(pids, check);
}

/*
 * Deal with transactions that hold the mark by a lock on its tuple.  The
 * caller has the resource's exclusive lock, so that no more of them can come,
 * and is about to update the tuple, which waits for those that remain.
 */
void
lockfence_settle_lockers(List *lockers, const FenceCheck *check)
{
	ListCell   *cell;

	require_patience(check);
	foreach(cell, lockers)
	{
		TransactionId xid = (TransactionId) lfirst_oid(cell);

		lockfence_settle_stale(xid, check);
		wait_for_xid(xid, wait_report(check), true);
	}
}

/*
 * A transaction with a higher token changes the mark and waits for this one:
 * one of them must be the victim, and it is the lower token.
 */
static void
give_way(TransactionId xid, const FenceCheck *check)
{
	int			pid = xid_pid(xid);

	if (pid != 0 && lockfence_waits_for_me(pid))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
				 errmsg("deadlock detected"),
				 errdetail("Process %d advances the mark of resource \"%s\" to a higher token, and waits for this transaction.",
						   pid, lockfence_readable_resource(&check->write)),
				 errhint("Call lockfence.present(resource, token) before the transaction locks any row.")));
}

/* Is a transaction that is changing the mark to the pending token, or removing it (0), a stale holder beside the token? */
bool
lockfence_is_stale_change(FenceToken pending, FenceToken token)
{
	return pending != 0 && lockfence_compare(token, pending) == HIGHER;
}

/* Wait for the end of a transaction that is changing the mark. */
void
lockfence_wait_for_change(TransactionId xid, FenceToken pending,
						  const FenceCheck *check)
{
	bool		stale = lockfence_is_stale_change(pending, check->token);

	require_patience(check);
	if (stale)
		lockfence_settle_stale(xid, check);
	else if (lockfence_compare(check->token, pending) == STALE)
		give_way(xid, check);
	wait_for_xid(xid, wait_report(check), stale);
}
