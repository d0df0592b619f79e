/*
 * stats.c
 *		Counters that survive the rollback.
 *
 * A refusal aborts its transaction, so what is to be seen of it lives in
 * shared memory.  Without such memory nothing is counted and the view has no
 * rows: the fence itself needs none of this.
 *
 * Locking.  Counters are atomics in a table of slots, found by hashing
 * database and table to a set of slots.  To count takes no lock.  A spinlock
 * is taken to give a table its slot; where the set is full, the table that
 * counted longest ago gives its slot up.  A count that races with a take-over
 * may land with the new table.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/lock.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "rows.h"
#include "shmem.h"
#include "stats.h"
#include "visible.h"

/* Slots that one table may be found in. */
#define SET_SIZE 8

/* The key of a slot that is free, and of one that is changing hands. */
#define FREE_KEY	UINT64CONST(0)
#define TAKEN_KEY	PG_UINT64_MAX

#define DEFAULT_MAX_TABLES 1024

/* Log windows of tables that have no slot; some share one. */
#define LOCAL_WINDOWS 16

typedef struct TableSlot
{
	pg_atomic_uint64 key;		/* database and table */
	pg_atomic_uint64 last_used; /* a timestamp */
	pg_atomic_uint64 counters[LOCKFENCE_NCOUNTERS];
	LogWindow	windows[NREFUSAL_CLASSES];
} TableSlot;

/* A slot that this backend has found before. */
typedef struct KnownSlot
{
	uint64		key;
	TableSlot  *slot;
} KnownSlot;

typedef struct SharedStats
{
	int			nsets;
	slock_t		mutex;			/* of the slots' keys */
	pg_atomic_uint64 evicted;	/* tables that gave their slot up */
	pg_atomic_uint64 reset_at;
	TableSlot	tables[FLEXIBLE_ARRAY_MEMBER];
} SharedStats;

PG_FUNCTION_INFO_V1(lockfence_counters);
PG_FUNCTION_INFO_V1(lockfence_stats_rows);
PG_FUNCTION_INFO_V1(lockfence_stats_rows_1_1);

/* settings */
static bool track = true;
static int	max_tables = DEFAULT_MAX_TABLES;

static SharedStats *stats = NULL;

/* How many sets take so many tables. */
static int
wanted_sets(void)
{
	return (max_tables + SET_SIZE - 1) / SET_SIZE;
}

/* How much shared memory the counters take, in bytes. */
static Size
memory_size(void)
{
	return add_size(offsetof(SharedStats, tables),
					mul_size(wanted_sets() * SET_SIZE, sizeof(TableSlot)));
}

static void
clear_slot(TableSlot *slot)
{
	for (int i = 0; i < LOCKFENCE_NCOUNTERS; i++)
		pg_atomic_write_u64(&slot->counters[i], 0);
	for (int i = 0; i < NREFUSAL_CLASSES; i++)
	{
		pg_atomic_write_u64(&slot->windows[i].start, 0);
		pg_atomic_write_u64(&slot->windows[i].logged, 0);
		pg_atomic_write_u64(&slot->windows[i].suppressed, 0);
	}
}

static void
init_windows(LogWindow *windows)
{
	for (int i = 0; i < NREFUSAL_CLASSES; i++)
	{
		pg_atomic_init_u64(&windows[i].start, 0);
		pg_atomic_init_u64(&windows[i].logged, 0);
		pg_atomic_init_u64(&windows[i].suppressed, 0);
	}
}

/* Make new memory ready for use. */
static void
init_memory(void *memory)
{
	SharedStats *fresh = (SharedStats *) memory;

	fresh->nsets = wanted_sets();
	SpinLockInit(&fresh->mutex);
	pg_atomic_init_u64(&fresh->evicted, 0);
	pg_atomic_init_u64(&fresh->reset_at, (uint64) GetCurrentTimestamp());
	for (int i = 0; i < fresh->nsets * SET_SIZE; i++)
	{
		TableSlot  *slot = &fresh->tables[i];

		pg_atomic_init_u64(&slot->key, FREE_KEY);
		pg_atomic_init_u64(&slot->last_used, 0);
		for (int j = 0; j < LOCKFENCE_NCOUNTERS; j++)
			pg_atomic_init_u64(&slot->counters[j], 0);
		init_windows(slot->windows);
	}
}

const SharedSegment lockfence_stats_segment = {memory_size, init_memory};

/* The counters, or NULL where there is no memory for them. */
static SharedStats *
shared_stats(void)
{
	if (stats == NULL)
		stats = lockfence_look_at_memory(&lockfence_stats_segment);
	return stats;
}

/* Is anything counted in this session? */
bool
lockfence_tracks(void)
{
	return track && shared_stats() != NULL;
}

static bool
check_max_tables(int *newval, void **extra, GucSource source)
{
	return lockfence_settle_size(newval, DEFAULT_MAX_TABLES);
}

/* Called once per backend, or by the postmaster. */
void
lockfence_stats_init(void)
{
	DefineCustomBoolVariable("lockfence.track",
							 "Counts what fences decide, and keeps the last refusals and takeovers.",
							 NULL, &track, true, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("lockfence.max_tables",
							"Sets for how many tables there are counters.",
							"Past that number the table that counted longest ago gives way.",
							&max_tables, DEFAULT_MAX_TABLES, SET_SIZE, 1 << 20,
							lockfence_size_context(), 0, check_max_tables, NULL, NULL);
}

/* The set of slots that a table may be found in. */
static TableSlot *
slot_set(uint64 key)
{
	uint32		hash = hash_bytes((const unsigned char *) &key, sizeof(key));

	return &stats->tables[(hash % stats->nsets) * SET_SIZE];
}

/* The slot of a table; NULL: it has none. */
static TableSlot *
find_slot(TableSlot *set, uint64 key)
{
	for (int i = 0; i < SET_SIZE; i++)
	{
		if (pg_atomic_read_u64(&set[i].key) == key)
			return &set[i];
	}
	return NULL;
}

/* Who has to give way: a slot that is free, or was used longest ago. */
static TableSlot *
oldest_slot(TableSlot *set)
{
	TableSlot  *oldest = &set[0];

	for (int i = 0; i < SET_SIZE; i++)
	{
		if (pg_atomic_read_u64(&set[i].key) == FREE_KEY)
			return &set[i];
		if (pg_atomic_read_u64(&set[i].last_used) < pg_atomic_read_u64(&oldest->last_used))
			oldest = &set[i];
	}
	return oldest;
}

/* Give a table its slot, unless another session just did. */
static TableSlot *
assign_slot(TableSlot *set, uint64 key, uint64 now)
{
	TableSlot  *slot;

	SpinLockAcquire(&stats->mutex);
	slot = find_slot(set, key);
	if (slot == NULL)
	{
		slot = oldest_slot(set);
		if (pg_atomic_read_u64(&slot->key) != FREE_KEY)
			pg_atomic_fetch_add_u64(&stats->evicted, 1);
		pg_atomic_write_u64(&slot->key, TAKEN_KEY);
		clear_slot(slot);
		pg_atomic_write_u64(&slot->last_used, now);
		pg_write_barrier();
		pg_atomic_write_u64(&slot->key, key);
	}
	SpinLockRelease(&stats->mutex);
	return slot;
}

/*
 * The slot of a relation of this database; NULL: of no relation.  Most
 * transactions count by turns for one table and for none.
 */
static TableSlot *
relation_slot(Relation rel)
{
	static KnownSlot last[2];
	KnownSlot  *known = &last[rel != NULL];
	uint64		key = ((uint64) MyDatabaseId << 32) | (rel ? RelationGetRelid(rel) : 0);
	uint64		now = (uint64) GetCurrentStatementStartTimestamp();

	if (key != known->key || pg_atomic_read_u64(&known->slot->key) != key)
	{
		TableSlot  *set = slot_set(key);

		known->slot = find_slot(set, key);
		if (known->slot == NULL)
			known->slot = assign_slot(set, key, now);
		known->key = key;
	}
	pg_atomic_write_u64(&known->slot->last_used, now);
	return known->slot;
}

/* Count one; on present(), which writes to no table, rel is NULL. */
void
lockfence_count(Relation rel, LockfenceCounter counter)
{
	if (lockfence_tracks())
		pg_atomic_fetch_add_u64(&relation_slot(rel)->counters[counter], 1);
}

/* Count more than one. */
void
lockfence_count_more(Relation rel, LockfenceCounter counter, uint64 more)
{
	if (lockfence_tracks())
		pg_atomic_fetch_add_u64(&relation_slot(rel)->counters[counter], more);
}

/* Keep the highest value. */
void
lockfence_count_highest(Relation rel, LockfenceCounter counter, uint64 value)
{
	pg_atomic_uint64 *highest;
	uint64		known;

	if (!lockfence_tracks())
		return;
	highest = &relation_slot(rel)->counters[counter];
	known = pg_atomic_read_u64(highest);
	while (known < value && !pg_atomic_compare_exchange_u64(highest, &known, value))
		;
}

/*
 * How many refusals of the relation and the class were logged of late.  Without
 * shared memory, a session knows of its own.
 */
LogWindow *
lockfence_log_window(Relation rel, RefusalClass class)
{
	static LogWindow local[LOCAL_WINDOWS][NREFUSAL_CLASSES];
	static bool initialized = false;

	if (lockfence_tracks())
		return &relation_slot(rel)->windows[class];
	for (int i = 0; !initialized && i < LOCAL_WINDOWS; i++)
		init_windows(local[i]);
	initialized = true;
	return &local[(rel ? RelationGetRelid(rel) : 0) % LOCAL_WINDOWS][class];
}

/* What a column of the counters' rows is; from COUNTER_COLUMN on, a counter. */
typedef enum StatsColumn
{
	DATABASE_COLUMN,
	TABLE_COLUMN,
	SUPPRESSED_COLUMN,
	LAST_USED_COLUMN,
	COUNTER_COLUMN
} StatsColumn;

static const struct
{
	const char *name;
	Oid			type;
}			known_columns[] = {
	[DATABASE_COLUMN] = {"database", OIDOID},
	[TABLE_COLUMN] = {"relid", OIDOID},
	[SUPPRESSED_COLUMN] = {"log_suppressed", INT8OID},
	[LAST_USED_COLUMN] = {"last_used", TIMESTAMPTZOID},
#define COUNTER(counter, column) [COUNTER_COLUMN + LOCKFENCE_##counter] = {#column, INT8OID},
#include "counters.def"
#define BUCKET(counter, column, most) [COUNTER_COLUMN + LOCKFENCE_##counter] = {#column, INT8OID},
#define MEASURE(counter, column) [COUNTER_COLUMN + LOCKFENCE_##counter] = {#column, INT8OID},
#include "overlap.def"
};

/* Which column it is that the caller asks for. */
static int
find_column(Form_pg_attribute attribute)
{
	for (int i = 0; i < lengthof(known_columns); i++)
	{
		if (strcmp(known_columns[i].name, NameStr(attribute->attname)) == 0 &&
			known_columns[i].type == attribute->atttypid)
			return i;
	}
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN),
			 errmsg("there is no counter \"%s\" of type %s",
					lockfence_visible(NameStr(attribute->attname)), format_type_be(attribute->atttypid))));
}

/* How many refusals of the table were held back since the last line of their class. */
static int64
count_suppressed(TableSlot *slot)
{
	int64		suppressed = 0;

	for (int i = 0; i < NREFUSAL_CLASSES; i++)
		suppressed += (int64) pg_atomic_read_u64(&slot->windows[i].suppressed);
	return suppressed;
}

static Datum
column_value(TableSlot *slot, uint64 key, int column)
{
	switch (column)
	{
		case DATABASE_COLUMN:
			return ObjectIdGetDatum((Oid) (key >> 32));
		case TABLE_COLUMN:
			return ObjectIdGetDatum((Oid) key);
		case SUPPRESSED_COLUMN:
			return Int64GetDatum(count_suppressed(slot));
		case LAST_USED_COLUMN:
			return TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&slot->last_used));
		default:
			return Int64GetDatum((int64) pg_atomic_read_u64(&slot->counters[column - COUNTER_COLUMN]));
	}
}

/*
 * _counters(): one row per table, of all databases, with the columns that the caller
 * asks for by name.  So a counter more takes no other function.
 */
Datum
lockfence_counters(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int			columns[MaxTupleAttributeNumber];
	Datum		values[MaxTupleAttributeNumber];
	bool		isnull[MaxTupleAttributeNumber] = {false};
	int			natts;

	lockfence_begin_rows(fcinfo);
	natts = rsinfo->setDesc->natts;
	for (int i = 0; i < natts; i++)
		columns[i] = find_column(TupleDescAttr(rsinfo->setDesc, i));
	for (int i = 0; shared_stats() != NULL && i < stats->nsets * SET_SIZE; i++)
	{
		TableSlot  *slot = &stats->tables[i];
		uint64		key = pg_atomic_read_u64(&slot->key);

		CHECK_FOR_INTERRUPTS();
		if (key == FREE_KEY || key == TAKEN_KEY)
			continue;
		for (int j = 0; j < natts; j++)
			values[j] = column_value(slot, key, columns[j]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
	}
	return (Datum) 0;
}

/* _stats(), as 1.1 declared it, by columns of the same names */
Datum
lockfence_stats_rows_1_1(PG_FUNCTION_ARGS)
{
	return lockfence_counters(fcinfo);
}

/* ... and 1.0 */
Datum
lockfence_stats_rows(PG_FUNCTION_ARGS)
{
	return lockfence_counters(fcinfo);
}

static int
count_used_slots(void)
{
	int			used = 0;

	for (int i = 0; i < stats->nsets * SET_SIZE; i++)
		used += pg_atomic_read_u64(&stats->tables[i].key) != FREE_KEY;
	return used;
}

/* How much is kept, and since when. */
StatsTotals
lockfence_stats_totals(void)
{
	if (shared_stats() == NULL)
		return (StatsTotals) {.available = false};
	return (StatsTotals) {
		.available = true,
		.capacity = (int64) stats->nsets * SET_SIZE,
		.used = count_used_slots(),
		.evicted = (int64) pg_atomic_read_u64(&stats->evicted),
		.reset_at = (TimestampTz) pg_atomic_read_u64(&stats->reset_at)
	};
}

/* Set every counter to 0, of all databases. */
void
lockfence_forget_stats(void)
{
	if (shared_stats() == NULL)
		return;
	for (int i = 0; i < stats->nsets * SET_SIZE; i++)
		clear_slot(&stats->tables[i]);
	pg_atomic_write_u64(&stats->evicted, 0);
	pg_atomic_write_u64(&stats->reset_at, (uint64) GetCurrentTimestamp());
}
