/*
 * reslock.c
 *		The lock on a resource.
 *
 * A transaction that was accepted at the mark holds its resource to its end, in
 * HOLD_MODE.  One that changes the mark has the lock in EXCLUSIVE_MODE, only
 * while it writes; from there the uncommitted version of the mark stands in the
 * way of others.
 *
 * The lock is an advisory lock in the lock manager, except for holds that take the
 * fast path (fastpath.c).  So the exclusive lock takes three steps: acquire it in
 * the lock manager, which waits for the transactions that hold the resource there;
 * keep slots from being filled; and wait for the transactions that hold the
 * resource by a slot.
 *
 * A transaction acquires a hold before it knows whether the hold is of use: the
 * mark may have changed before.  Once it knows, it grants or releases the hold.
 * Until then an advance revokes a hold that is in a slot, and waits for the release
 * of one that is not.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/array.h"
#include "utils/resowner.h"

#include "args.h"
#include "compat.h"
#include "fastpath.h"
#include "reslock.h"
#include "resource.h"
#include "visible.h"

PG_FUNCTION_INFO_V1(lockfence_fast_path_holders);
PG_FUNCTION_INFO_V1(lockfence_light_holders);

/* Conflicts with the exclusive mode and not with itself. */
#define HOLD_MODE			ShareLock
/* Conflicts with itself and with the mode of holders. */
#define EXCLUSIVE_MODE		ShareUpdateExclusiveLock
/* Conflicts with HOLD_MODE alone, to ask who holds. */
#define FIND_HOLDERS_MODE	RowExclusiveLock

/* Field 4 of an advisory lock's tag; pg_advisory_lock() uses 1 and 2. */
#define RESOURCE_LOCK_CLASS 0x4C46

/* The tag of the resource's lock. */
LOCKTAG
lockfence_resource_tag(const ResourceKey *resource)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (resource->hash >> 32),
						 (uint32) resource->hash, RESOURCE_LOCK_CLASS);
	return tag;
}

/* ---------------------------------------------------------------- to hold */

/*
 * Acquire or release the lock in hold mode.  It must live as long as the memo
 * that relies on it, so it belongs to the current subtransaction, not to the
 * portal that runs: a cursor that was opened further out and fails in here
 * would also release what it acquired earlier, further out.
 */
static bool
acquire_lock(const ResourceKey *resource, bool wait)
{
	LOCKTAG		tag = lockfence_resource_tag(resource);
	ResourceOwner portal = CurrentResourceOwner;
	LockAcquireResult result;

	CurrentResourceOwner = CurTransactionResourceOwner;
	result = LockAcquire(&tag, HOLD_MODE, false, !wait);
	CurrentResourceOwner = portal;
	return result != LOCKACQUIRE_NOT_AVAIL;
}

static void
release_lock(const ResourceKey *resource)
{
	LOCKTAG		tag = lockfence_resource_tag(resource);
	ResourceOwner portal = CurrentResourceOwner;

	CurrentResourceOwner = CurTransactionResourceOwner;
	(void) LockRelease(&tag, HOLD_MODE, false);
	CurrentResourceOwner = portal;
}

/*
 * Hold the resource, if that needs no wait, to the transaction's end or just
 * briefly: until lockfence_release_hold().
 */
bool
lockfence_try_hold(ResourceHold *hold, const ResourceKey *resource, bool briefly)
{
	hold->resource = resource;
	hold->slot = lockfence_fill_slot(resource, briefly);
	return hold->slot != NULL || acquire_lock(resource, false);
}

/* Say what was waited for, in the error that ends the wait. */
static void
report_wait(void *arg)
{
	errcontext("while waiting for an advance of the mark of resource \"%s\"",
			   lockfence_visible(((const ResourceKey *) arg)->name));
}

/*
 * Hold the resource where lockfence_try_hold() could not: wait for an advance.
 * The caller has no page pinned, since VACUUM may wait for the backend that has
 * one, which no deadlock check sees.
 */
void
lockfence_wait_for_hold(ResourceHold *hold)
{
	ErrorContextCallback callback = {
		.previous = error_context_stack,
		.callback = report_wait,
		.arg = (void *) hold->resource
	};

	error_context_stack = &callback;
	(void) acquire_lock(hold->resource, true);
	error_context_stack = callback.previous;
}

/* Keep a hold that is of use.  Returns false if an advance has revoked it; it must still be released. */
bool
lockfence_grant_hold(const ResourceHold *hold)
{
	return hold->slot == NULL || lockfence_grant_slot(hold->slot, hold->resource);
}

/* Release the hold that was acquired last. */
void
lockfence_release_hold(const ResourceHold *hold)
{
	if (hold->slot != NULL)
		lockfence_free_slot(hold->slot);
	else
		release_lock(hold->resource);
}

/* ---------------------------------------------------------------- to keep out */

/* The next of the other transactions that hold the resource by a slot. */
static bool
next_other_in_slot(const ResourceKey *resource, int *backend, VirtualTransactionId *vxid)
{
	while (lockfence_next_fastpath_holder(resource, backend, vxid))
	{
		if (LOCKFENCE_VXID_BACKEND(*vxid) != LOCKFENCE_MY_BACKEND)
			return true;
	}
	return false;
}

static bool
is_held_in_slot(const ResourceKey *resource)
{
	VirtualTransactionId vxid;
	int			backend = 0;

	return next_other_in_slot(resource, &backend, &vxid);
}

/* Lock the resource to change its mark, if that needs no wait. */
bool
lockfence_try_exclusive(const ResourceKey *resource)
{
	LOCKTAG		tag = lockfence_resource_tag(resource);

	if (LockAcquire(&tag, EXCLUSIVE_MODE, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	lockfence_begin_strong_lock(resource);
	if (!is_held_in_slot(resource))
		return true;
	lockfence_release_exclusive(resource);
	return false;
}

/* The same, but wait for all transactions that hold it. */
void
lockfence_wait_for_exclusive(const ResourceKey *resource)
{
	LOCKTAG		tag = lockfence_resource_tag(resource);
	VirtualTransactionId vxid;
	int			backend = 0;

	(void) LockAcquire(&tag, EXCLUSIVE_MODE, false, false);
	lockfence_begin_strong_lock(resource);
	while (next_other_in_slot(resource, &backend, &vxid))
		(void) VirtualXactLock(vxid, true);
}

void
lockfence_release_exclusive(const ResourceKey *resource)
{
	LOCKTAG		tag = lockfence_resource_tag(resource);

	lockfence_end_strong_lock();
	(void) LockRelease(&tag, EXCLUSIVE_MODE, false);
}

/* ---------------------------------------------------------------- holders */

/*
 * Wait for the end of another backend's transaction in this database.  A prepared
 * one has no backend.
 */
static void
wait_for_neighbour(VirtualTransactionId vxid)
{
	PGPROC	   *proc = LOCKFENCE_VXID_HAS_BACKEND(vxid) ? LOCKFENCE_VXID_PROC(vxid) : NULL;

	if (proc != NULL && proc != MyProc && proc->databaseId == MyDatabaseId)
		(void) VirtualXactLock(vxid, true);
}

/* Wait for the end of the transactions that hold any resource of this database now. */
void
lockfence_wait_for_all_holders(void)
{
	LockData   *locks = GetLockStatusData();
	VirtualTransactionId vxid;
	int			backend = 0;

	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];

		LOCKFENCE_GET_LOCK_VXID(vxid, lock);
		if (lock->locktag.locktag_type == LOCKTAG_ADVISORY &&
			lock->locktag.locktag_field4 == RESOURCE_LOCK_CLASS &&
			(lock->holdMask & LOCKBIT_ON(HOLD_MODE)) != 0)
			wait_for_neighbour(vxid);
	}
	while (lockfence_next_fastpath_holder(NULL, &backend, &vxid))
		wait_for_neighbour(vxid);
}

/* The backend that runs this very transaction, or 0. */
static int
vxid_pid(VirtualTransactionId vxid)
{
	PGPROC	   *proc;
	int			pid = 0;

	if (!LOCKFENCE_VXID_HAS_BACKEND(vxid))
		return 0;
	proc = LOCKFENCE_VXID_PROC(vxid);
	if (proc == NULL)
		return 0;
	LWLockAcquire(ProcArrayLock, LW_SHARED);
	if (LOCKFENCE_PROC_LXID(proc) == vxid.localTransactionId)
		pid = proc->pid;
	LWLockRelease(ProcArrayLock);
	return pid;
}

static List *
add_pid(List *pids, VirtualTransactionId vxid)
{
	int			pid = vxid_pid(vxid);

	return pid != 0 ? list_append_unique_int(pids, pid) : pids;
}

/* The other backends that hold the resource, as a list of process ids. */
List *
lockfence_holder_pids(const ResourceKey *resource)
{
	LOCKTAG		tag = lockfence_resource_tag(resource);
	VirtualTransactionId *vxids = GetLockConflicts(&tag, FIND_HOLDERS_MODE, NULL);
	VirtualTransactionId vxid;
	List	   *pids = NIL;
	int			backend = 0;

	for (; VirtualTransactionIdIsValid(*vxids); vxids++)
		pids = add_pid(pids, *vxids);
	while (next_other_in_slot(resource, &backend, &vxid))
		pids = add_pid(pids, vxid);
	return pids;
}

/* _fast_path_holders(resource): the processes that hold it by the fast path, ours too */
Datum
lockfence_fast_path_holders(PG_FUNCTION_ARGS)
{
	ArrayBuildState *pids = initArrayResult(INT4OID, CurrentMemoryContext, false);
	VirtualTransactionId vxid;
	ResourceKey resource;
	int			backend = 0;

	lockfence_set_resource_key(&resource, lockfence_require_resource(fcinfo, 0));
	while (lockfence_next_fastpath_holder(&resource, &backend, &vxid))
	{
		int			pid = vxid_pid(vxid);

		if (pid != 0)
			pids = accumArrayResult(pids, Int32GetDatum(pid), false, INT4OID,
									CurrentMemoryContext);
	}
	PG_RETURN_DATUM(makeArrayResult(pids, CurrentMemoryContext));
}

/* _light_holders(resource), as 1.1 declared it */
Datum
lockfence_light_holders(PG_FUNCTION_ARGS)
{
	return lockfence_fast_path_holders(fcinfo);
}
