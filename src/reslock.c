/*
 * reslock.c
 *		Who holds a resource: the shared half of its lock.
 *
 * A transaction that was accepted at the mark holds its resource to its end.
 * There are two ways to hold.  The heavyweight lock in HOLD_MODE always works.
 * To take it and let it go costs more than the rest of a check, so where there
 * is shared memory a few resources are held lightly: their hashes are noted in
 * the backend's place there, and taken away at the transaction's end.
 *
 * Why that excludes an advance as well as the lock does.  A light holder notes
 * the hash, and then looks whether anybody claims the resource; an advance
 * claims it, and then looks for notes.  Between the two steps each has a full
 * memory barrier, so at least one of them sees the other: the holder takes its
 * note back and queues up for the lock, or the advance waits for the end of the
 * holder's transaction.  A claim lasts as long as the lock in advance mode does,
 * and so from the advance's look on nobody comes to hold the resource lightly
 * until its mark has been written.  Claims are counted by a part of the hash;
 * two resources that share a counter cost each other the short way only.
 *
 * A note that was just made may be taken back, because of a claim or because the
 * mark has changed meanwhile, and then its maker may queue up for the lock.  An
 * advance that had begun to wait for the maker's transaction would be in a
 * deadlock with it, over nothing.  So a note counts once it is confirmed, and an
 * advance waits the moment in which that is open.
 *
 * An advance waits for the light holder's virtual transaction, and so deadlocks
 * are found as ever, while it has the lock in advance mode already: who comes
 * later waits behind it, as in the queue of the lock.
 *
 * What is held lightly can be let go neither by ROLLBACK TO SAVEPOINT, since those
 * who wait would not be woken, nor handed to a prepared transaction.  So
 * subtransactions hold by the lock, and so does everybody where transactions may
 * be prepared.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "utils/array.h"
#include "utils/resowner.h"

#include "args.h"
#include "compat.h"
#include "reslock.h"
#include "resource.h"
#include "shmem.h"
#include "visible.h"

PG_FUNCTION_INFO_V1(lockfence_light_holders);

/* Conflicts with the mode of an advance (lockwait.c) and not with itself ... */
#define HOLD_MODE			ShareLock
/* ... and this one with HOLD_MODE alone, to ask who holds. */
#define FIND_HOLDERS_MODE	RowExclusiveLock

/* Field 4 of an advisory lock's tag; pg_advisory_lock() uses 1 and 2. */
#define RESOURCE_LOCK_CLASS 0x4C46

/* Notes of a backend, of which the last is for brief holds. */
#define NNOTES	7
#define NCLAIMS 4096

/* What a backend holds lightly. */
typedef struct Place
{
	LocalTransactionId lxid;	/* the transaction that the notes are of */
	uint32		confirmed;		/* so many of them, from the first on */
	uint64		notes[NNOTES];	/* hashes of resources; 0: free */
} Place;

typedef struct Holds
{
	pg_atomic_uint32 claims[NCLAIMS];
	int			size;
	pg_atomic_uint32 used;		/* places that were ever used */
	char		padding[sizeof(Place) - sizeof(int) - sizeof(pg_atomic_uint32)];
	Place		places[FLEXIBLE_ARRAY_MEMBER];
} Holds;

/* Each backend writes to its place all the time, and so has a cache line of its own. */
StaticAssertDecl(sizeof(Place) == 64 && offsetof(Holds, places) % 64 == 0,
				 "a place is a cache line");

/* What a place says of a resource. */
typedef enum Hold
{
	NOT_HELD,
	OPEN,						/* not known yet, but at any moment */
	HELD
} Hold;

static Holds *holds = NULL;
static volatile Place *mine = NULL;
static int	nnotes = 0;			/* ... of this transaction */
static bool last_was_light;		/* the way in which the last hold was taken */
static pg_atomic_uint32 *claim = NULL;	/* by this backend */

/* ---------------------------------------------------------------- resources */

/* The tag of the resource's lock. */
LOCKTAG
lockfence_resource_tag(const ResourceKey *resource)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (resource->hash >> 32),
						 (uint32) resource->hash, RESOURCE_LOCK_CLASS);
	return tag;
}

/* ---------------------------------------------------------------- shared memory */

/* How much shared memory the notes and claims take, in bytes. */
static Size
memory_size(void)
{
	return add_size(offsetof(Holds, places), mul_size(LOCKFENCE_MAX_BACKENDS, sizeof(Place)));
}

/* Make new memory ready for use. */
static void
init_memory(void *memory)
{
	Holds	   *fresh = (Holds *) memory;

	for (int i = 0; i < NCLAIMS; i++)
		pg_atomic_init_u32(&fresh->claims[i], 0);
	fresh->size = LOCKFENCE_MAX_BACKENDS;
	pg_atomic_init_u32(&fresh->used, 0);
	memset(fresh->places, 0, mul_size(fresh->size, sizeof(Place)));
}

const SharedSegment lockfence_holds_segment = {memory_size, init_memory};

static bool
have_holds(void)
{
	if (holds == NULL)
		holds = lockfence_shared_memory(&lockfence_holds_segment);
	return holds != NULL;
}

/* Have this backend's place looked at; false if it cannot have one. */
static bool
take_place(void)
{
	uint32		needed = LOCKFENCE_MY_PLACE + 1;
	uint32		used;

	if (max_prepared_xacts > 0 || !have_holds() || needed > (uint32) holds->size)
		return false;
	used = pg_atomic_read_u32(&holds->used);
	while (used < needed &&
		   !pg_atomic_compare_exchange_u32(&holds->used, &used, needed))
		;
	mine = &holds->places[needed - 1];
	return true;
}

static pg_atomic_uint32 *
claims_on(const ResourceKey *resource)
{
	return &holds->claims[resource->hash % NCLAIMS];
}

/* ---------------------------------------------------------------- to hold */

/* Hold the resource by a note, unless that cannot be or somebody claims it. */
static bool
hold_lightly(const ResourceKey *resource, int limit)
{
	if (nnotes >= limit || resource->hash == 0 ||
		GetCurrentTransactionNestLevel() > 1 || (mine == NULL && !take_place()))
		return false;
	if (nnotes == 0)
		mine->lxid = LOCKFENCE_PROC_LXID(MyProc);
	pg_write_barrier();
	mine->notes[nnotes] = resource->hash;
	pg_memory_barrier();
	if (pg_atomic_read_u32(claims_on(resource)) != 0)
	{
		mine->notes[nnotes] = 0;
		return false;
	}
	nnotes++;
	return true;
}

/* Say what was waited for, in the error that ends the wait. */
static void
report_wait(void *arg)
{
	errcontext("while waiting for an advance of the mark of resource \"%s\"",
			   lockfence_visible(((const ResourceKey *) arg)->name));
}

static void
acquire_lock(const LOCKTAG *tag, const ResourceKey *resource)
{
	ErrorContextCallback callback = {
		.previous = error_context_stack,
		.callback = report_wait,
		.arg = (void *) resource
	};

	error_context_stack = &callback;
	(void) LockAcquire(tag, HOLD_MODE, false, false);
	error_context_stack = callback.previous;
}

/*
 * Take or let go of the lock in hold mode.  It must live as long as the memo
 * that relies on it, so it belongs to the current subtransaction, not to the
 * portal that runs: a cursor that was opened further out and fails in here
 * would take what it acquired earlier, further out, down with it.
 */
static void
change_lock(const ResourceKey *resource, bool acquire)
{
	LOCKTAG		tag = lockfence_resource_tag(resource);
	ResourceOwner portal = CurrentResourceOwner;

	CurrentResourceOwner = CurTransactionResourceOwner;
	if (acquire)
		acquire_lock(&tag, resource);
	else
		(void) LockRelease(&tag, HOLD_MODE, false);
	CurrentResourceOwner = portal;
}

/*
 * Hold the resource, to the transaction's end or just briefly: until
 * lockfence_unlock_shared().  Waits for an advance.  Nothing may wait for long
 * until the caller confirms that the mark is what he takes it for.
 */
void
lockfence_lock_shared(const ResourceKey *resource, bool briefly)
{
	last_was_light = hold_lightly(resource, briefly ? NNOTES : NNOTES - 1);
	if (!last_was_light)
		change_lock(resource, true);
}

/* What the last lockfence_lock_shared() took is to be kept. */
void
lockfence_confirm_shared(void)
{
	if (last_was_light)
		mine->confirmed = nnotes;
}

/* Take back the last lockfence_lock_shared(). */
void
lockfence_unlock_shared(const ResourceKey *resource)
{
	if (!last_was_light)
		change_lock(resource, false);
	else
	{
		Assert(nnotes > 0 && mine->notes[nnotes - 1] == resource->hash);
		mine->notes[--nnotes] = 0;
		mine->confirmed = nnotes;
	}
}

/* ---------------------------------------------------------------- to keep out */

/* Does the place hold the resource lightly?  Tells by which transaction. */
static Hold
look_at_place(const volatile Place *place, const ResourceKey *resource,
			  LocalTransactionId *lxid)
{
	uint32		i;
	Hold		hold;

	do
	{
		*lxid = place->lxid;
		pg_read_barrier();
		i = 0;
		while (i < NNOTES && place->notes[i] != resource->hash)
			i++;
		pg_read_barrier();
		hold = i == NNOTES ? NOT_HELD : i < place->confirmed ? HELD : OPEN;
		pg_read_barrier();
	} while (place->lxid != *lxid);
	return hold;
}

/*
 * The same, for certain where this backend claims the resource: what is open
 * then will be settled, and nobody comes to hold it after that.
 */
static bool
place_holds(const volatile Place *place, const ResourceKey *resource,
			LocalTransactionId *lxid)
{
	Hold		hold;

	while ((hold = look_at_place(place, resource, lxid)) == OPEN && claim != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(100);
	}
	return hold == HELD;
}

/* The next of those who hold the resource lightly, from place *i on. */
static bool
next_light_holder(const ResourceKey *resource, int *i, VirtualTransactionId *vxid)
{
	int			used = have_holds() ? pg_atomic_read_u32(&holds->used) : 0;

	while (*i < used)
	{
		int			place = (*i)++;
		LocalTransactionId lxid;

		if (place_holds(&holds->places[place], resource, &lxid))
		{
			LOCKFENCE_SET_VXID(*vxid, place, lxid);
			return true;
		}
	}
	return false;
}

/* The same, but for this backend. */
static bool
next_other_light_holder(const ResourceKey *resource, int *i, VirtualTransactionId *vxid)
{
	while (next_light_holder(resource, i, vxid))
	{
		if (*i - 1 != LOCKFENCE_MY_PLACE)
			return true;
	}
	return false;
}

/* Have nobody come to hold the resource lightly, until lockfence_unclaim(). */
void
lockfence_claim(const ResourceKey *resource)
{
	Assert(claim == NULL);
	if (have_holds())
	{
		claim = claims_on(resource);
		pg_atomic_fetch_add_u32(claim, 1);
	}
}

void
lockfence_unclaim(void)
{
	if (claim != NULL)
		pg_atomic_fetch_sub_u32(claim, 1);
	claim = NULL;
}

/* Does another transaction hold the resource lightly? */
bool
lockfence_is_held_lightly(const ResourceKey *resource)
{
	VirtualTransactionId vxid;
	int			i = 0;

	return next_other_light_holder(resource, &i, &vxid);
}

/* Wait for the end of the transactions that hold a claimed resource lightly. */
void
lockfence_wait_for_light_holders(const ResourceKey *resource)
{
	VirtualTransactionId vxid;
	int			i = 0;

	while (next_other_light_holder(resource, &i, &vxid))
		(void) VirtualXactLock(vxid, true);
}

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
	int			used = have_holds() ? pg_atomic_read_u32(&holds->used) : 0;
	LockData   *locks = GetLockStatusData();
	VirtualTransactionId vxid;

	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];

		LOCKFENCE_GET_LOCK_VXID(vxid, lock);
		if (lock->locktag.locktag_type == LOCKTAG_ADVISORY &&
			lock->locktag.locktag_field4 == RESOURCE_LOCK_CLASS &&
			(lock->holdMask & LOCKBIT_ON(HOLD_MODE)) != 0)
			wait_for_neighbour(vxid);
	}
	for (int place = 0; place < used; place++)
	{
		LOCKFENCE_SET_VXID(vxid, place, holds->places[place].lxid);
		if (holds->places[place].confirmed > 0)
			wait_for_neighbour(vxid);
	}
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
	int			i = 0;

	for (; VirtualTransactionIdIsValid(*vxids); vxids++)
		pids = add_pid(pids, *vxids);
	while (next_other_light_holder(resource, &i, &vxid))
		pids = add_pid(pids, vxid);
	return pids;
}

/* _light_holders(resource): the processes that hold it lightly, ours too */
Datum
lockfence_light_holders(PG_FUNCTION_ARGS)
{
	ArrayBuildState *pids = initArrayResult(INT4OID, CurrentMemoryContext, false);
	VirtualTransactionId vxid;
	ResourceKey resource;
	int			i = 0;

	lockfence_set_resource_key(&resource, lockfence_require_resource(fcinfo, 0));
	while (next_light_holder(&resource, &i, &vxid))
	{
		int			pid = vxid_pid(vxid);

		if (pid != 0)
			pids = accumArrayResult(pids, Int32GetDatum(pid), false, INT4OID,
									CurrentMemoryContext);
	}
	PG_RETURN_DATUM(makeArrayResult(pids, CurrentMemoryContext));
}

/* ---------------------------------------------------------------- the end */

/* The transaction's effects are there for all to see: let go. */
static void
let_go_of_all(void)
{
	pg_write_barrier();
	if (nnotes > 0)
		mine->confirmed = 0;
	while (nnotes > 0)
		mine->notes[--nnotes] = 0;
	lockfence_unclaim();
}

/* How the transaction goes. */
void
lockfence_reslock_at_xact(XactEvent event)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		let_go_of_all();
}

/* An error that a savepoint catches may have ended a claimer's wait. */
void
lockfence_reslock_at_subxact(SubXactEvent event)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		lockfence_unclaim();
}
