/*
 * offenders.c
 *		Refusals counted by table, SQLSTATE, role, application and address, in shared
 *		memory: what is left of a refusal when the ring has long gone round.
 *
 * An offender is found by hashing its key to a set of slots.  Where the set is full,
 * the offender that was seen longest ago gives its slot up.  Stale tokens have sets
 * of their own.
 *
 * Locking.  A spinlock per set, held for the look at its slots and the copy of one
 * record.  All else is done before it is taken.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "storage/lock.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "offenders.h"
#include "rows.h"

/* Slots that one offender may be found in. */
#define SET_SIZE 16

#define DEFAULT_MAX_OFFENDERS 512

typedef struct OffenderSlot
{
	uint32		hash;			/* of the key */
	int64		refused;
	int64		reported;		/* by an advisory fence, which let them pass */
	TimestampTz first_at;		/* 0: the slot is free */
	RecordedRefusal last;		/* the key, and the last refusal */
} OffenderSlot;

typedef struct OffenderSet
{
	slock_t		mutex;
	OffenderSlot slots[SET_SIZE];
} OffenderSet;

typedef struct Offenders
{
	int			nsets;			/* of each class */
	pg_atomic_uint64 evicted[NREFUSAL_CLASSES];
	OffenderSet sets[FLEXIBLE_ARRAY_MEMBER];	/* one class after the other */
} Offenders;

PG_FUNCTION_INFO_V1(lockfence_offender_rows);

/* settings */
static int	max_offenders = DEFAULT_MAX_OFFENDERS;

static Offenders *offenders = NULL;

/* How many sets take so many offenders. */
static int
wanted_sets(void)
{
	return (max_offenders + SET_SIZE - 1) / SET_SIZE;
}

/* How much shared memory they take, in bytes. */
static Size
memory_size(void)
{
	return add_size(offsetof(Offenders, sets),
					mul_size(NREFUSAL_CLASSES * wanted_sets(), sizeof(OffenderSet)));
}

/* Make new memory ready for use. */
static void
init_memory(void *memory)
{
	Offenders  *fresh = (Offenders *) memory;

	fresh->nsets = wanted_sets();
	for (int i = 0; i < NREFUSAL_CLASSES; i++)
		pg_atomic_init_u64(&fresh->evicted[i], 0);
	for (int i = 0; i < NREFUSAL_CLASSES * fresh->nsets; i++)
	{
		SpinLockInit(&fresh->sets[i].mutex);
		memset(fresh->sets[i].slots, 0, sizeof(fresh->sets[i].slots));
	}
}

const SharedSegment lockfence_offenders_segment = {memory_size, init_memory};

/* The offenders, or NULL where there is no memory for them. */
static Offenders *
shared_offenders(void)
{
	if (offenders == NULL)
		offenders = lockfence_look_at_memory(&lockfence_offenders_segment);
	return offenders;
}

static bool
check_max_offenders(int *newval, void **extra, GucSource source)
{
	return lockfence_settle_size(newval, DEFAULT_MAX_OFFENDERS);
}

/* Called once per backend, or by the postmaster. */
void
lockfence_offenders_init(void)
{
	DefineCustomIntVariable("lockfence.max_offenders",
							"Sets for how many sessions' roles, applications and addresses refusals are counted.",
							"So many by stale tokens, and as many by all other refusals. Past that number the one that was refused longest ago gives way.",
							&max_offenders, DEFAULT_MAX_OFFENDERS, SET_SIZE, 1 << 20,
							lockfence_size_context(), 0, check_max_offenders, NULL, NULL);
}

static uint32
hash_key(const RecordedRefusal *refusal)
{
	const SessionClient *client = &refusal->client;
	uint32		hash = hash_bytes_uint32(refusal->database);

	hash = hash_combine(hash, hash_bytes_uint32(refusal->table));
	hash = hash_combine(hash, hash_bytes_uint32(refusal->sqlstate));
	hash = hash_combine(hash, hash_bytes_uint32(client->role));
	hash = hash_combine(hash, string_hash(client->application_name, NAMEDATALEN));
	return hash_combine(hash, string_hash(client->address, KEPT_ADDRESS_LEN));
}

/* Are both refusals the same offender's? */
static bool
same_key(const RecordedRefusal *a, const RecordedRefusal *b)
{
	return a->database == b->database && a->table == b->table &&
		a->sqlstate == b->sqlstate && a->client.role == b->client.role &&
		strcmp(a->client.application_name, b->client.application_name) == 0 &&
		strcmp(a->client.address, b->client.address) == 0;
}

/* The offender's slot; NULL: it has none. */
static OffenderSlot *
find_slot(OffenderSet *set, uint32 hash, const RecordedRefusal *refusal)
{
	for (int i = 0; i < SET_SIZE; i++)
	{
		OffenderSlot *slot = &set->slots[i];

		if (slot->first_at != 0 && slot->hash == hash && same_key(&slot->last, refusal))
			return slot;
	}
	return NULL;
}

/* Which slot has to give way: one that is free, or whose offender was seen longest ago. */
static OffenderSlot *
oldest_slot(OffenderSet *set)
{
	OffenderSlot *oldest = &set->slots[0];

	for (int i = 1; i < SET_SIZE; i++)
	{
		/* a free one was last seen at 0 */
		if (set->slots[i].last.at < oldest->last.at)
			oldest = &set->slots[i];
	}
	return oldest;
}

/* Count a refusal in its set, which is locked.  Has another offender given way? */
static bool
count_in_set(OffenderSet *set, uint32 hash, const RecordedRefusal *refusal)
{
	OffenderSlot *slot = find_slot(set, hash, refusal);
	bool		evicts = false;

	if (slot == NULL)
	{
		slot = oldest_slot(set);
		evicts = slot->first_at != 0;
		slot->hash = hash;
		slot->refused = slot->reported = 0;
		slot->first_at = refusal->at;
		slot->last.at = 0;
	}
	if (refusal->advisory)
		slot->reported++;
	else
		slot->refused++;
	/* of two that race for the set, the older one may come last */
	if (slot->last.at <= refusal->at)
		slot->last = *refusal;
	return evicts;
}

/* Count a refusal. */
void
lockfence_count_offender(RefusalClass class, const RecordedRefusal *refusal)
{
	uint32		hash = hash_key(refusal);
	OffenderSet *set;
	bool		evicts;

	if (shared_offenders() == NULL)
		return;
	set = &offenders->sets[class * offenders->nsets + hash % offenders->nsets];
	SpinLockAcquire(&set->mutex);
	evicts = count_in_set(set, hash, refusal);
	SpinLockRelease(&set->mutex);
	if (evicts)
		pg_atomic_fetch_add_u64(&offenders->evicted[class], 1);
}

/* How many offenders there can be, are, and have given way. */
KeptTotals
lockfence_offender_totals(RefusalClass class)
{
	KeptTotals	totals = {0};
	OffenderSet *sets;

	if (shared_offenders() == NULL)
		return totals;
	totals.capacity = (int64) offenders->nsets * SET_SIZE;
	totals.evicted = pg_atomic_read_u64(&offenders->evicted[class]);
	sets = &offenders->sets[class * offenders->nsets];
	for (int i = 0; i < offenders->nsets; i++)
	{
		SpinLockAcquire(&sets[i].mutex);
		for (int j = 0; j < SET_SIZE; j++)
			totals.used += sets[i].slots[j].first_at != 0;
		SpinLockRelease(&sets[i].mutex);
	}
	return totals;
}

/* Forget all of them, of all databases. */
void
lockfence_forget_offenders(void)
{
	if (shared_offenders() == NULL)
		return;
	for (int i = 0; i < NREFUSAL_CLASSES * offenders->nsets; i++)
	{
		SpinLockAcquire(&offenders->sets[i].mutex);
		for (int j = 0; j < SET_SIZE; j++)
			offenders->sets[i].slots[j].first_at = offenders->sets[i].slots[j].last.at = 0;
		SpinLockRelease(&offenders->sets[i].mutex);
	}
	for (int i = 0; i < NREFUSAL_CLASSES; i++)
		pg_atomic_write_u64(&offenders->evicted[i], 0);
}

/* Add one row of _offenders(). */
static void
put_offender(ReturnSetInfo *rsinfo, const OffenderSlot *slot)
{
	const RecordedRefusal *last = &slot->last;
	Datum		values[10 + CLIENT_COLUMNS];
	bool		isnull[10 + CLIENT_COLUMNS] = {false};
	int			n = 0;

	values[n++] = ObjectIdGetDatum(last->database);
	values[n++] = ObjectIdGetDatum(last->table);
	values[n++] = CStringGetTextDatum(unpack_sql_state(last->sqlstate));
	lockfence_client_columns(&last->client, values + n, isnull + n);
	n += CLIENT_COLUMNS;
	values[n++] = Int64GetDatum(slot->refused);
	values[n++] = Int64GetDatum(slot->reported);
	values[n++] = TimestampTzGetDatum(slot->first_at);
	values[n++] = TimestampTzGetDatum(last->at);
	isnull[n] = last->resource.text[0] == '\0';
	values[n++] = lockfence_kept_name(&last->resource);
	isnull[n] = last->token == 0;
	values[n++] = Int64GetDatum(last->token);
	isnull[n] = last->mark == 0;
	values[n++] = Int64GetDatum(last->mark);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

/* _offenders(): all of them, in no order */
Datum
lockfence_offender_rows(PG_FUNCTION_ARGS)
{
	lockfence_begin_rows(fcinfo);
	if (shared_offenders() == NULL)
		return (Datum) 0;
	for (int i = 0; i < NREFUSAL_CLASSES * offenders->nsets * SET_SIZE; i++)
	{
		OffenderSet *set = &offenders->sets[i / SET_SIZE];
		OffenderSlot copy;

		CHECK_FOR_INTERRUPTS();
		SpinLockAcquire(&set->mutex);
		copy = set->slots[i % SET_SIZE];
		SpinLockRelease(&set->mutex);
		if (copy.first_at != 0)
			put_offender((ReturnSetInfo *) fcinfo->resultinfo, &copy);
	}
	return (Datum) 0;
}
