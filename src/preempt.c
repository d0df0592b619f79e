/*
 * preempt.c
 *		Ending transactions that hold a resource by a stale token.
 *
 * That is done if lockfence.preempt is on, and if a deadlock would make one of the
 * two transactions the victim.  They are ended through pg_cancel_backend()
 * and pg_terminate_backend(), so that their checks apply.  Between the last
 * look at a holder's transaction and the signal it may end by itself and begin
 * another; core's own functions have that window too.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "check.h"
#include "compat.h"
#include "ended.h"
#include "preempt.h"
#include "readable.h"
#include "stats.h"
#include "token.h"
#include "visible.h"

/*
 * The role whose rights decide which sessions may be ended.  An administrator's
 * function runs as its owner, but its caller asks for the end.
 */
static Oid
asking_role(const FenceCheck *check)
{
	return check->by_administrator ? GetOuterUserId() : GetUserId();
}

/* May the role end that backend?  As pg_terminate_backend() will decide. */
static bool
may_end(const PGPROC *proc, Oid role)
{
	if (superuser_arg(role))
		return true;
	return !superuser_arg(proc->roleId) &&
		(has_privs_of_role(role, proc->roleId) ||
		 has_privs_of_role(role, LOCKFENCE_SIGNAL_BACKEND_ROLE));
}

/* Signal the backend as that role. */
static void
signal_backend(int pid, bool terminate, Oid role)
{
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(role, context | SECURITY_LOCAL_USERID_CHANGE);
	/* the timeout argument came with 14; 13 does not look at it */
	if (terminate)
		(void) DirectFunctionCall2(pg_terminate_backend, Int32GetDatum(pid),
								   Int64GetDatum(0));
	else
		(void) DirectFunctionCall1(pg_cancel_backend, Int32GetDatum(pid));
	SetUserIdAndSecContext(user, context);
}

/*
 * Does the backend report that it is between two statements?  With
 * track_activities off it reports nothing.
 */
static bool
is_idle(int pid)
{
	pgstat_clear_snapshot();
	for (int i = 1; i <= pgstat_fetch_stat_numbackends(); i++)
	{
		LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index(i);
		BackendState state = local->backendStatus.st_state;

		if (local->backendStatus.st_procpid == pid)
			return state == STATE_IDLE || state == STATE_IDLEINTRANSACTION ||
				state == STATE_IDLEINTRANSACTION_ABORTED;
	}
	return false;
}

/* End a stale holder, unless it is gone; returns false if this role may not. */
static bool
end_holder(int pid, bool terminate, const FenceCheck *check, const char *why)
{
	Oid			role = asking_role(check);
	PGPROC	   *proc = BackendPidGetProc(pid);

	if (proc == NULL)
		return true;
	if (!may_end(proc, role))
	{
		ereport(WARNING,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot end process %d, which holds resource \"%s\" by a stale token",
						pid, lockfence_readable_resource(&check->write)),
				 errdetail("Role \"%s\" may not signal it.",
						   lockfence_visible(GetUserNameFromId(role, false))),
				 errhint("Run both holders under one role, or grant pg_signal_backend to the role.")));
		return false;
	}
	ereport(LOG_SERVER_ONLY,
			(errmsg("%s process %d, which holds resource \"%s\" by a stale token",
					terminate ? "terminating" : "canceling", pid,
					lockfence_visible(check->write.resource)),
			 errdetail("%s; token %s is advancing the mark.", why,
					   lockfence_token_text(check->token))));
	lockfence_note_end(pid, check);
	signal_backend(pid, terminate, role);
	lockfence_count(check->write.rel, LOCKFENCE_PREEMPTED);
	return true;
}

/*
 * Preempt the holders: terminate those that are idle in their transaction, where a
 * cancel does nothing, and cancel the others, whether they run a statement or do
 * not report what they do.  Those that are still there the second time are
 * terminated either way.  So a cancel that does nothing costs the advance one grace
 * period, while a session that was terminated needlessly would be lost.
 */
bool
lockfence_preempt_holders(List *pids, bool again, const FenceCheck *check)
{
	bool		ended = false;
	ListCell   *cell;

	foreach(cell, pids)
	{
		int			pid = lfirst_int(cell);

		ended |= end_holder(pid, again || is_idle(pid), check,
							"lockfence.preempt is on");
	}
	return ended;
}

/*
 * Does the backend wait for this one, directly or through others?  The list
 * grows while it is walked, and names each of them once: where many wait for
 * the same lock, the paths between them are too many to follow.
 */
bool
lockfence_waits_for_me(int pid)
{
	List	   *waiters = list_make1_int(pid);

	for (int i = 0; i < list_length(waiters); i++)
	{
		ArrayType  *blockers = DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids,
																	  Int32GetDatum(list_nth_int(waiters, i))));
		int32	   *pids = (int32 *) ARR_DATA_PTR(blockers);
		int			npids = ArrayGetNItems(ARR_NDIM(blockers), ARR_DIMS(blockers));

		for (int j = 0; j < npids; j++)
		{
			if (pids[j] == MyProcPid)
				return true;
			if (pids[j] != 0)
				waiters = list_append_unique_int(waiters, pids[j]);
		}
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/*
 * If waiting for a stale holder would close a circle, one of them must be the
 * victim: the lower token.  Returns whether there was one to end.
 */
bool
lockfence_break_deadlocks(List *pids, const FenceCheck *check)
{
	bool		ended = false;
	ListCell   *cell;

	foreach(cell, pids)
	{
		if (lockfence_waits_for_me(lfirst_int(cell)))
			ended |= end_holder(lfirst_int(cell), false, check,
								"each waits for the other, and the lower token gives way");
	}
	return ended;
}
