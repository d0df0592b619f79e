/*
 * takeovers.c
 *		The last changes of marks, in rings in shared memory: who took over, and when.
 *
 * There is one ring for resources that had a mark and one for those that had none.
 * Where each job is a resource of its own, first tokens come by the thousand, and
 * would soon overwrite the few takeovers.
 *
 * Changes get here when they are committed (advances.c), so they are numbered in the
 * order in which their commits ended.  For one resource that is the order of its
 * marks: its next change waits for the transaction that made the last.
 *
 * A slot is written and read under a spinlock of its own.  A search for a resource reads
 * the identifier without it first, and takes the locks of that resource's slots only.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "rows.h"
#include "takeovers.h"
#include "token.h"

#define DEFAULT_MAX_TAKEOVERS 1024

/* All are searched at each stale write. */
#define MOST_TAKEOVERS 65536

/* The rings: of resources that had no mark, and of those that had one. */
#define NRINGS 2

typedef struct TakeoverSlot
{
	slock_t		mutex;
	pg_atomic_uint64 id;		/* as in takeover */
	uint64		number;			/* counted from 1 over both rings; 0: empty */
	Takeover	takeover;
} TakeoverSlot;

typedef struct Rings
{
	int			size;			/* of each */
	pg_atomic_uint64 last;		/* number given out */
	pg_atomic_uint64 position[NRINGS];	/* slots given out */
	pg_atomic_uint64 forgotten[NRINGS]; /* ... when the rings were emptied */
	TakeoverSlot slots[FLEXIBLE_ARRAY_MEMBER];	/* one ring after the other */
} Rings;

PG_FUNCTION_INFO_V1(lockfence_takeover_rows);

static const char *const way_names[] = {
	[BY_PRESENT] = "present",
	[BY_COLUMN] = "column",
	[BY_GUARDED] = "guarded",
	[BY_ISSUE] = "issue",
	[BY_RAISE_MARK] = "raise_mark",
	[BY_RESET_MARK] = "reset_mark",
	[BY_REPLICATION] = "replication",
	[BY_RESTORE] = "restore"
};

/* setting */
static int	max_takeovers = DEFAULT_MAX_TAKEOVERS;

static Rings *rings = NULL;

/* How much shared memory the rings take, in bytes. */
static Size
memory_size(void)
{
	return add_size(offsetof(Rings, slots),
					mul_size(mul_size(NRINGS, max_takeovers), sizeof(TakeoverSlot)));
}

/* Make new memory ready for use. */
static void
init_memory(void *memory)
{
	Rings	   *fresh = (Rings *) memory;

	fresh->size = max_takeovers;
	pg_atomic_init_u64(&fresh->last, 0);
	for (int i = 0; i < NRINGS; i++)
	{
		pg_atomic_init_u64(&fresh->position[i], 0);
		pg_atomic_init_u64(&fresh->forgotten[i], 0);
	}
	for (int i = 0; i < NRINGS * fresh->size; i++)
	{
		SpinLockInit(&fresh->slots[i].mutex);
		pg_atomic_init_u64(&fresh->slots[i].id, 0);
		fresh->slots[i].number = 0;
	}
}

const SharedSegment lockfence_takeovers_segment = {memory_size, init_memory};

/* How many slots there are; 0 where there is no memory for them. */
static int
count_slots(void)
{
	if (rings == NULL)
		rings = lockfence_look_at_memory(&lockfence_takeovers_segment);
	return rings ? NRINGS * rings->size : 0;
}

static bool
check_max_takeovers(int *newval, void **extra, GucSource source)
{
	return lockfence_settle_size(newval, DEFAULT_MAX_TAKEOVERS);
}

/* Called once per backend, or by the postmaster. */
void
lockfence_takeovers_init(void)
{
	DefineCustomIntVariable("lockfence.max_takeovers",
							"Sets how many of the last takeovers are kept.",
							"And as many of the first tokens of resources.",
							&max_takeovers, DEFAULT_MAX_TAKEOVERS, 1, MOST_TAKEOVERS,
							lockfence_size_context(), 0, check_max_takeovers, NULL, NULL);
}

/*
 * Put a change into its ring, over the oldest; of its resource's name no more than there
 * is.  Called where the transaction has committed: must not fail.
 */
void
lockfence_keep_takeover(const Takeover *takeover, size_t name_length)
{
	int			ring = takeover->change.before != 0;
	uint64		number;
	uint64		position;
	TakeoverSlot *slot;

	if (count_slots() == 0)
		return;
	number = pg_atomic_fetch_add_u64(&rings->last, 1) + 1;
	position = pg_atomic_fetch_add_u64(&rings->position[ring], 1);
	slot = &rings->slots[ring * rings->size + position % rings->size];
	SpinLockAcquire(&slot->mutex);
	/* of two that race for the slot, the older one is lost */
	if (slot->number < number)
	{
		slot->number = number;
		memcpy(&slot->takeover, takeover, offsetof(Takeover, resource.text) + name_length + 1);
		pg_atomic_write_u64(&slot->id, takeover->id);
	}
	SpinLockRelease(&slot->mutex);
}

/* What a slot has of the resource; false: nothing that was committed. */
static bool
read_change(TakeoverSlot *slot, uint64 id, uint64 *number, FenceToken *token, TimestampTz *at)
{
	bool		found;

	if (pg_atomic_read_u64(&slot->id) != id)
		return false;
	SpinLockAcquire(&slot->mutex);
	found = slot->number != 0 && slot->takeover.id == id && !slot->takeover.prepared;
	*number = slot->number;
	*token = slot->takeover.change.token;
	*at = slot->takeover.at;
	SpinLockRelease(&slot->mutex);
	return found;
}

/* The number of the last change that left the mark at the token, or lower; 0: none is known. */
static uint64
last_below(uint64 id, FenceToken token)
{
	int			nslots = count_slots();
	uint64		last = 0;

	for (int i = 0; i < nslots; i++)
	{
		uint64		number;
		FenceToken	mark;
		TimestampTz at;

		if (read_change(&rings->slots[i], id, &number, &mark, &at) &&
			lockfence_compare(mark, token) != HIGHER)
			last = Max(last, number);
	}
	return last;
}

/*
 * When the mark of the resource rose above the token: by the first change after the last
 * that left it at the token or lower.  0: no such change is known.  If changes before
 * that one are no longer known, the mark may have risen before.
 */
TimestampTz
lockfence_risen_at(uint64 id, FenceToken token)
{
	int			nslots = id == 0 ? 0 : count_slots();
	uint64		below = nslots == 0 ? 0 : last_below(id, token);
	uint64		first = PG_UINT64_MAX;
	TimestampTz risen_at = 0;

	for (int i = 0; i < nslots; i++)
	{
		uint64		number;
		FenceToken	mark;
		TimestampTz at;

		if (read_change(&rings->slots[i], id, &number, &mark, &at) &&
			lockfence_compare(mark, token) == HIGHER && number > below && number < first)
		{
			first = number;
			risen_at = at;
		}
	}
	return risen_at;
}

/* How many takeovers, or first marks, can be kept, are kept, and were overwritten. */
KeptTotals
lockfence_takeover_totals(bool of_first_marks)
{
	int			ring = !of_first_marks;
	int64		written;

	if (count_slots() == 0)
		return (KeptTotals) {0};
	written = pg_atomic_read_u64(&rings->position[ring]) - pg_atomic_read_u64(&rings->forgotten[ring]);
	return (KeptTotals) {
		.capacity = rings->size,
		.used = Min(written, rings->size),
		.evicted = Max(written - rings->size, 0)
	};
}

/* Empty the rings; the numbers go on. */
void
lockfence_forget_takeovers(void)
{
	int			nslots = count_slots();

	for (int i = 0; nslots > 0 && i < NRINGS; i++)
		pg_atomic_write_u64(&rings->forgotten[i], pg_atomic_read_u64(&rings->position[i]));
	for (int i = 0; i < nslots; i++)
	{
		SpinLockAcquire(&rings->slots[i].mutex);
		rings->slots[i].number = 0;
		SpinLockRelease(&rings->slots[i].mutex);
	}
}

/* Add one row of _takeovers(). */
static void
put_takeover(ReturnSetInfo *rsinfo, uint64 number, const Takeover *takeover)
{
	Datum		values[10 + CLIENT_COLUMNS];
	bool		isnull[10 + CLIENT_COLUMNS] = {false};
	int			n = 0;

	values[n++] = Int64GetDatum((int64) number);
	values[n++] = TimestampTzGetDatum(takeover->at);
	values[n++] = ObjectIdGetDatum(takeover->database);
	values[n++] = ObjectIdGetDatum(takeover->table);
	values[n++] = lockfence_kept_name(&takeover->resource);
	isnull[n] = takeover->change.before == 0;
	values[n++] = Int64GetDatum(takeover->change.before);
	values[n++] = Int64GetDatum(takeover->change.token);
	values[n++] = CStringGetTextDatum(way_names[takeover->change.way]);
	values[n++] = BoolGetDatum(takeover->prepared);
	values[n++] = Int64GetDatum(takeover->left_out);
	lockfence_client_columns(&takeover->client, values + n, isnull + n);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

/* _takeovers(): the rings, in no order */
Datum
lockfence_takeover_rows(PG_FUNCTION_ARGS)
{
	int			nslots;

	lockfence_begin_rows(fcinfo);
	nslots = count_slots();
	for (int i = 0; i < nslots; i++)
	{
		TakeoverSlot *slot = &rings->slots[i];
		uint64		number;
		Takeover	copy;

		CHECK_FOR_INTERRUPTS();
		SpinLockAcquire(&slot->mutex);
		number = slot->number;
		copy = slot->takeover;
		SpinLockRelease(&slot->mutex);
		if (number != 0)
			put_takeover((ReturnSetInfo *) fcinfo->resultinfo, number, &copy);
	}
	return (Datum) 0;
}
