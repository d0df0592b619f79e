/*
 * fastpath.c
 *		The fast path of the lock on a resource: slots by which backends hold
 *		resources without the lock manager, and strong-lock counters.
 *
 * To acquire and release a lock in the lock manager costs more than the rest of
 * a check.  So where there is shared memory, a transaction that was accepted at
 * the mark holds its first few resources by slots of its backend.  The scheme,
 * and its words, are those of the fast path in PostgreSQL's lock.c.  The weak
 * lock, which is the hold of a transaction, goes into a slot if the resource's
 * strong-lock counter is zero.  The strong lock, which is that of an advance,
 * increments the counter, so that no more slots are filled, and then deals with
 * those that are.  Counters are chosen by the hash; where two resources share
 * one, an advance of either costs the other the fast path, and no more.
 *
 * There are two differences.
 *
 * No LWLock protects a backend's slots.  In lock.c a backend reads the counter
 * and fills its slot under one (fpInfoLock), and others read its slots under the
 * same.  Here it fills the slot and then reads the counter, and an advance
 * increments the counter and then reads the slots.  Each has a full memory
 * barrier between its two steps, so at least one of them sees the other.  But
 * the slot is then visible before it is known whether it may stay: the counter
 * may not be zero, or the mark may have changed.  So a slot is pending at first.
 * Its backend grants it, by an atomic exchange, once it has seen under it that
 * the mark is what it takes it for.  An advance that meets a pending slot
 * revokes it, by an atomic exchange as well.  Whichever comes first decides.  A
 * revoked slot never held anything: its backend finds out when it is about to
 * grant it, and decides again from the start.  So an advance never waits for a
 * pending slot, however long its backend is stopped in between.
 *
 * There is no transfer.  In lock.c the strong lock moves what it finds in slots
 * to the main lock table, in the name of its holders, and waits for it there; an
 * extension cannot acquire a lock for another backend.  Instead an advance waits
 * for the virtual transaction of each holder (reslock.c), which the lock manager
 * knows, and so lock_timeout, deadlock checks and pg_blocking_pids() work as
 * ever.  It does so while it has the resource's lock, so that later holders
 * queue up behind it.
 *
 * What follows from that: a granted slot lasts to the end of its transaction,
 * since an advance that waits would not be woken before.  So a subtransaction,
 * which may be rolled back alone, holds by the lock manager, and so does every
 * transaction where one may be prepared, and then has no backend whose slot it
 * could be.
 * And as an advance waits for granted slots only, no transaction that it waits
 * for can lose its slot and then queue up behind the advance: that would be a
 * deadlock without need.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/proc.h"

#include "compat.h"
#include "fastpath.h"
#include "resource.h"
#include "shmem.h"

/* Slots of a backend, of which the last is for brief holds. */
#define NSLOTS		7
#define NCOUNTERS	4096

/* What a slot says: 0, or most of a resource's hash and one of these. */
#define SLOT_PENDING	2
#define SLOT_GRANTED	3
#define SLOT_STATE		3

typedef struct BackendSlots
{
	LocalTransactionId lxid;	/* the transaction that they are of */
	pg_atomic_uint64 slots[NSLOTS];
} BackendSlots;

typedef struct FastPath
{
	pg_atomic_uint32 counters[NCOUNTERS];	/* strong locks, by hash */
	int			size;
	pg_atomic_uint32 used;		/* backends that ever had slots */
	char		padding[64 - sizeof(int) - sizeof(pg_atomic_uint32)];
	BackendSlots backends[FLEXIBLE_ARRAY_MEMBER];
} FastPath;

/* Each backend writes to its slots all the time, and so has a cache line of its own. */
#ifndef PG_HAVE_ATOMIC_U64_SIMULATION
StaticAssertDecl(sizeof(BackendSlots) == 64 && offsetof(FastPath, backends) % 64 == 0,
				 "a backend's slots are a cache line");
#endif

/* A strong lock of this backend, which ends with its subtransaction at the latest. */
typedef struct StrongLock
{
	pg_atomic_uint32 *counter;	/* NULL: there is none */
	SubTransactionId subid;
} StrongLock;

static FastPath *fastpath = NULL;
static BackendSlots *mine = NULL;
static int	nfilled = 0;		/* slots of this transaction */
static StrongLock strong = {NULL, InvalidSubTransactionId};

/* ---------------------------------------------------------------- shared memory */

/* How much shared memory the slots and counters take, in bytes. */
static Size
memory_size(void)
{
	return add_size(offsetof(FastPath, backends),
					mul_size(LOCKFENCE_MAX_BACKENDS, sizeof(BackendSlots)));
}

/* Make new memory ready for use. */
static void
init_memory(void *memory)
{
	FastPath   *fresh = (FastPath *) memory;

	for (int i = 0; i < NCOUNTERS; i++)
		pg_atomic_init_u32(&fresh->counters[i], 0);
	fresh->size = LOCKFENCE_MAX_BACKENDS;
	pg_atomic_init_u32(&fresh->used, 0);
	for (int i = 0; i < fresh->size; i++)
	{
		fresh->backends[i].lxid = InvalidLocalTransactionId;
		for (int j = 0; j < NSLOTS; j++)
			pg_atomic_init_u64(&fresh->backends[i].slots[j], 0);
	}
}

const SharedSegment lockfence_fastpath_segment = {memory_size, init_memory};

static bool
have_fastpath(void)
{
	if (fastpath == NULL)
		fastpath = lockfence_shared_memory(&lockfence_fastpath_segment);
	return fastpath != NULL;
}

/* Have this backend's slots looked at; false if it cannot have any. */
static bool
take_slots(void)
{
	uint32		needed = LOCKFENCE_MY_BACKEND + 1;
	uint32		used;

	if (max_prepared_xacts > 0 || !have_fastpath() || needed > (uint32) fastpath->size)
		return false;
	used = pg_atomic_read_u32(&fastpath->used);
	while (used < needed &&
		   !pg_atomic_compare_exchange_u32(&fastpath->used, &used, needed))
		;
	mine = &fastpath->backends[needed - 1];
	return true;
}

static pg_atomic_uint32 *
counter_of(const ResourceKey *resource)
{
	return &fastpath->counters[resource->hash % NCOUNTERS];
}

static uint64
slot_word(const ResourceKey *resource, uint64 state)
{
	return (resource->hash & ~(uint64) SLOT_STATE) | state;
}

/* ---------------------------------------------------------------- weak locks */

/*
 * Fill a slot, pending, with the resource; NULL if that cannot be, or if another
 * backend has a strong lock on the resource.  A brief one is freed before the end
 * of the transaction.
 */
pg_atomic_uint64 *
lockfence_fill_slot(const ResourceKey *resource, bool briefly)
{
	pg_atomic_uint64 *slot;

	LOCKFENCE_INJECTION_POINT("lockfence_fill_slot");
	if (nfilled >= (briefly ? NSLOTS : NSLOTS - 1) ||
		GetCurrentTransactionNestLevel() > 1 || (mine == NULL && !take_slots()))
		return NULL;
	if (nfilled == 0)
		mine->lxid = LOCKFENCE_PROC_LXID(MyProc);
	pg_write_barrier();
	slot = &mine->slots[nfilled++];
	pg_atomic_write_u64(slot, slot_word(resource, SLOT_PENDING));
	pg_memory_barrier();
	if (pg_atomic_read_u32(counter_of(resource)) == 0)
		return slot;
	lockfence_free_slot(slot);
	return NULL;
}

/* Make a pending slot hold the resource; false if an advance has revoked it. */
bool
lockfence_grant_slot(pg_atomic_uint64 *slot, const ResourceKey *resource)
{
	uint64		pending = slot_word(resource, SLOT_PENDING);

	LOCKFENCE_INJECTION_POINT("lockfence_grant_slot");
	return pg_atomic_compare_exchange_u64(slot, &pending,
										  slot_word(resource, SLOT_GRANTED));
}

/* Free the slot that was filled last. */
void
lockfence_free_slot(pg_atomic_uint64 *slot)
{
	LOCKFENCE_INJECTION_POINT("lockfence_free_slot");
	Assert(nfilled > 0 && slot == &mine->slots[nfilled - 1]);
	pg_atomic_write_u64(slot, 0);
	nfilled--;
}

/* ---------------------------------------------------------------- strong locks */

/* Have no slot filled with the resource until lockfence_end_strong_lock(). */
void
lockfence_begin_strong_lock(const ResourceKey *resource)
{
	Assert(strong.counter == NULL);
	if (!have_fastpath())
		return;
	strong.counter = counter_of(resource);
	strong.subid = GetCurrentSubTransactionId();
	pg_atomic_fetch_add_u32(strong.counter, 1);
}

void
lockfence_end_strong_lock(void)
{
	if (strong.counter != NULL)
		pg_atomic_fetch_sub_u32(strong.counter, 1);
	strong.counter = NULL;
}

/* ---------------------------------------------------------------- holders */

/*
 * Does one of the slots hold the resource?  A pending one does not; it is revoked
 * where this backend has the strong lock, and may have been granted just before.
 */
static bool
slots_hold(BackendSlots *backend, const ResourceKey *resource)
{
	uint64		pending = slot_word(resource, SLOT_PENDING);
	uint64		granted = slot_word(resource, SLOT_GRANTED);

	for (int i = 0; i < NSLOTS; i++)
	{
		uint64		found = pg_atomic_read_u64(&backend->slots[i]);

		if (found == pending && strong.counter != NULL)
			(void) pg_atomic_compare_exchange_u64(&backend->slots[i], &found, 0);
		if (found == granted)
			return true;
	}
	return false;
}

/* Does one of the slots hold anything? */
static bool
slots_hold_any(BackendSlots *backend)
{
	for (int i = 0; i < NSLOTS; i++)
	{
		if ((pg_atomic_read_u64(&backend->slots[i]) & SLOT_STATE) == SLOT_GRANTED)
			return true;
	}
	return false;
}

/* The same, of a resource or (NULL) of any, with the transaction that holds it. */
static bool
backend_holds(BackendSlots *backend, const ResourceKey *resource, LocalTransactionId *lxid)
{
	volatile LocalTransactionId *current = &backend->lxid;
	bool		holds;

	do
	{
		*lxid = *current;
		pg_read_barrier();
		holds = resource != NULL ? slots_hold(backend, resource) : slots_hold_any(backend);
		pg_read_barrier();
	} while (*current != *lxid);
	return holds;
}

/*
 * The next of the transactions that hold the resource by a slot, or (NULL) any
 * resource, from *backend on.  While this backend has the strong lock, no others
 * come to hold it so.
 */
bool
lockfence_next_fastpath_holder(const ResourceKey *resource, int *backend,
							   VirtualTransactionId *vxid)
{
	int			used = have_fastpath() ? pg_atomic_read_u32(&fastpath->used) : 0;

	while (*backend < used)
	{
		int			number = (*backend)++;
		LocalTransactionId lxid;

		if (backend_holds(&fastpath->backends[number], resource, &lxid))
		{
			LOCKFENCE_SET_VXID(*vxid, number, lxid);
			return true;
		}
	}
	return false;
}

/* ---------------------------------------------------------------- the end */

/* The end of the transaction: once its effects are visible to all, free its slots. */
void
lockfence_fastpath_at_xact(XactEvent event)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT)
		return;
	pg_write_barrier();
	while (nfilled > 0)
		pg_atomic_write_u64(&mine->slots[--nfilled], 0);
	lockfence_end_strong_lock();
}

/*
 * The end of a subtransaction.  The error that aborts it may have ended the wait of
 * an advance, or its write; then this ends the advance's strong lock.  A
 * subtransaction that aborts below an advance leaves the strong lock alone.
 */
void
lockfence_fastpath_at_subxact(SubXactEvent event)
{
	if (strong.counter == NULL || strong.subid != GetCurrentSubTransactionId())
		return;
	Assert(event != SUBXACT_EVENT_PRE_COMMIT_SUB && event != SUBXACT_EVENT_COMMIT_SUB);
	if (event == SUBXACT_EVENT_ABORT_SUB)
		lockfence_end_strong_lock();
}
