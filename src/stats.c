/*
 * stats.c
 *		Counters and a ring of refusals that survive the rollback.
 *
 * A refusal aborts its transaction, so what is to be seen of it lives in
 * shared memory.  Without such memory nothing is counted and the views have no
 * rows: the fence itself needs none of this.
 *
 * Locking.  Counters are atomics in a table of slots, found by hashing
 * database and table to a set of slots.  A slot is claimed by writing its key
 * with compare-and-exchange; where a set is full, the slot that counted
 * longest ago is taken over and its counters start anew.  A count that races
 * with a take-over may land with the new table: it is never lost, and no lock
 * stands in the write path.  A place in the ring is a spinlock's, held while
 * one refusal is copied.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "lockfence.h"

/* Slots that one table may be found in. */
#define SET_SIZE 8

/* Longest text kept of a resource name, and of a client's address. */
#define KEPT_RESOURCE_LEN	256
#define KEPT_ADDRESS_LEN	64

/* A table's refusals are logged one by one up to a number in this time. */
#define LOG_WINDOW_MS		60000

typedef struct TableSlot
{
	pg_atomic_uint64 key;		/* database and table; 0: free */
	pg_atomic_uint64 last_used; /* a timestamp */
	pg_atomic_uint64 counters[LOCKFENCE_NCOUNTERS];
	pg_atomic_uint64 window_start;	/* of the log lines below */
	pg_atomic_uint64 window_logged;
	pg_atomic_uint64 suppressed;	/* since the last line */
} TableSlot;

typedef struct RefusalSlot
{
	slock_t		mutex;
	uint64		number;			/* counted from 1; 0: empty */
	TimestampTz at;
	Oid			database;
	Oid			table;
	int			sqlstate;
	FenceToken	token;
	FenceToken	mark;
	Oid			role;
	int			pid;
	bool		advisory;
	char		resource[KEPT_RESOURCE_LEN];
	char		application_name[NAMEDATALEN];
	char		client_addr[KEPT_ADDRESS_LEN];
} RefusalSlot;

typedef struct SharedStats
{
	int			nsets;
	int			nrefusals;
	pg_atomic_uint64 refusals;	/* ever recorded */
	pg_atomic_uint64 evicted;	/* tables whose slot was taken over */
	pg_atomic_uint64 reset_at;
	TableSlot	tables[FLEXIBLE_ARRAY_MEMBER];
	/* the ring of refusals follows the tables */
} SharedStats;

PG_FUNCTION_INFO_V1(lockfence_stats_rows);
PG_FUNCTION_INFO_V1(lockfence_refusal_rows);
PG_FUNCTION_INFO_V1(lockfence_stats_info);
PG_FUNCTION_INFO_V1(lockfence_stats_reset);

/* settings */
static bool track = true;
static int	max_tables = 1024;
static int	max_refusals = 1024;
static int	log_refusals = 10;

static SharedStats *stats = NULL;

/* Room for so many tables, in whole sets. */
static int
wanted_sets(void)
{
	return (max_tables + SET_SIZE - 1) / SET_SIZE;
}

/* How much shared memory the statistics take, in bytes. */
Size
lockfence_stats_size(void)
{
	Size		size = offsetof(SharedStats, tables);

	size = add_size(size, mul_size(wanted_sets() * SET_SIZE, sizeof(TableSlot)));
	return add_size(size, mul_size(max_refusals, sizeof(RefusalSlot)));
}

static RefusalSlot *
refusal_slots(void)
{
	return (RefusalSlot *) &stats->tables[stats->nsets * SET_SIZE];
}

static void
clear_slot(TableSlot *slot)
{
	for (int i = 0; i < LOCKFENCE_NCOUNTERS; i++)
		pg_atomic_write_u64(&slot->counters[i], 0);
	pg_atomic_write_u64(&slot->window_start, 0);
	pg_atomic_write_u64(&slot->window_logged, 0);
	pg_atomic_write_u64(&slot->suppressed, 0);
}

/* Make new memory ready for use. */
void
lockfence_stats_init_memory(void *memory)
{
	SharedStats *fresh = (SharedStats *) memory;
	RefusalSlot *ring;

	fresh->nsets = wanted_sets();
	fresh->nrefusals = max_refusals;
	pg_atomic_init_u64(&fresh->refusals, 0);
	pg_atomic_init_u64(&fresh->evicted, 0);
	pg_atomic_init_u64(&fresh->reset_at, (uint64) GetCurrentTimestamp());
	for (int i = 0; i < fresh->nsets * SET_SIZE; i++)
	{
		TableSlot  *slot = &fresh->tables[i];

		pg_atomic_init_u64(&slot->key, 0);
		pg_atomic_init_u64(&slot->last_used, 0);
		for (int j = 0; j < LOCKFENCE_NCOUNTERS; j++)
			pg_atomic_init_u64(&slot->counters[j], 0);
		pg_atomic_init_u64(&slot->window_start, 0);
		pg_atomic_init_u64(&slot->window_logged, 0);
		pg_atomic_init_u64(&slot->suppressed, 0);
	}
	ring = (RefusalSlot *) &fresh->tables[fresh->nsets * SET_SIZE];
	for (int i = 0; i < fresh->nrefusals; i++)
	{
		SpinLockInit(&ring[i].mutex);
		ring[i].number = 0;
	}
}

/* The statistics, or NULL where there is no memory for them. */
static SharedStats *
shared_stats(void)
{
	if (stats == NULL)
		stats = lockfence_shared_memory(LOCKFENCE_SHARED_STATS);
	return stats;
}

/* Called once a backend, or by the postmaster. */
void
lockfence_stats_init(void)
{
	DefineCustomBoolVariable("lockfence.track",
							 "Counts what fences decide, and keeps the last refusals.",
							 NULL, &track, true, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("lockfence.max_tables",
							"Sets for how many tables there are counters.",
							"Past that number the table that counted longest ago gives way.",
							&max_tables, 1024, SET_SIZE, 1 << 20,
							lockfence_size_context(), 0, NULL, NULL, NULL);
	DefineCustomIntVariable("lockfence.max_refusals",
							"Sets how many of the last refusals are kept.",
							NULL, &max_refusals, 1024, 1, 1 << 20,
							lockfence_size_context(), 0, NULL, NULL, NULL);
	DefineCustomIntVariable("lockfence.log_refusals",
							"Sets how many refusals of a table are logged in a minute.",
							"Those beyond are counted, and their number is told by the next line. 0 logs none, -1 all.",
							&log_refusals, 10, -1, INT_MAX,
							PGC_SUSET, 0, NULL, NULL, NULL);
}

/* Take a slot of the set over for another table; false: somebody was faster. */
static bool
claim_slot(TableSlot *slot, uint64 was, uint64 key)
{
	if (!pg_atomic_compare_exchange_u64(&slot->key, &was, key))
		return false;
	if (was != 0)
	{
		clear_slot(slot);
		pg_atomic_fetch_add_u64(&stats->evicted, 1);
	}
	return true;
}

/* The slot of a table, which is given one if it has none. */
static TableSlot *
find_slot(uint64 key)
{
	uint32		hash = hash_bytes((const unsigned char *) &key, sizeof(key));
	TableSlot  *set = &stats->tables[(hash % stats->nsets) * SET_SIZE];

	for (;;)
	{
		TableSlot  *victim = NULL;
		uint64		victim_key = 0;

		for (int i = 0; i < SET_SIZE; i++)
		{
			uint64		other = pg_atomic_read_u64(&set[i].key);

			if (other == key)
				return &set[i];
			if (victim == NULL ||
				(victim_key != 0 &&
				 (other == 0 || pg_atomic_read_u64(&set[i].last_used) <
				  pg_atomic_read_u64(&victim->last_used))))
			{
				victim = &set[i];
				victim_key = other;
			}
		}
		if (claim_slot(victim, victim_key, key))
			return victim;
	}
}

/* The slot of a relation of this database; NULL: of no relation. */
static TableSlot *
relation_slot(Relation rel)
{
	static uint64 last_key = 0;
	static TableSlot *last_slot = NULL;
	uint64		key = ((uint64) MyDatabaseId << 32) | (rel ? RelationGetRelid(rel) : 0);

	if (key != last_key || pg_atomic_read_u64(&last_slot->key) != key)
	{
		last_slot = find_slot(key);
		last_key = key;
	}
	pg_atomic_write_u64(&last_slot->last_used,
						(uint64) GetCurrentStatementStartTimestamp());
	return last_slot;
}

/* Count one; on present(), which writes to no table, rel is NULL. */
void
lockfence_count(Relation rel, LockfenceCounter counter)
{
	if (!track || shared_stats() == NULL)
		return;
	pg_atomic_fetch_add_u64(&relation_slot(rel)->counters[counter], 1);
}

/* Where the client of this session is; "" where it is on this machine. */
static const char *
client_address(void)
{
	LOCAL_FCINFO(fcinfo, 0);
	Datum		address;

	if (MyProcPort == NULL)
		return "";
	InitFunctionCallInfoData(*fcinfo, NULL, 0, InvalidOid, NULL, NULL);
	address = inet_client_addr(fcinfo);
	return fcinfo->isnull ? "" : DatumGetCString(DirectFunctionCall1(inet_out, address));
}

/* Put a refusal into the ring, over the oldest. */
static void
keep_refusal(const FencedWrite *write, const Refusal *refusal)
{
	uint64		number = pg_atomic_fetch_add_u64(&stats->refusals, 1) + 1;
	RefusalSlot *slot = &refusal_slots()[number % stats->nrefusals];
	TimestampTz now = GetCurrentTimestamp();
	const char *address = client_address();
	int			resource_len = pg_mbcliplen(refusal->resource, strlen(refusal->resource),
											KEPT_RESOURCE_LEN - 1);

	SpinLockAcquire(&slot->mutex);
	if (slot->number < number)
	{
		slot->number = number;
		slot->at = now;
		slot->database = MyDatabaseId;
		slot->table = write->rel ? RelationGetRelid(write->rel) : InvalidOid;
		slot->sqlstate = refusal->sqlstate;
		slot->token = refusal->token;
		slot->mark = refusal->mark;
		slot->role = GetUserId();
		slot->pid = MyProcPid;
		slot->advisory = write->advisory;
		memcpy(slot->resource, refusal->resource, resource_len);
		slot->resource[resource_len] = '\0';
		strlcpy(slot->application_name, application_name ? application_name : "",
				NAMEDATALEN);
		strlcpy(slot->client_addr, address, KEPT_ADDRESS_LEN);
	}
	SpinLockRelease(&slot->mutex);
}

/*
 * May one more refusal of the table be logged?  Tells how many were held back
 * since the last that was.
 */
static bool
may_log(TableSlot *slot, uint64 *suppressed)
{
	uint64		now = (uint64) GetCurrentTimestamp();
	uint64		start = pg_atomic_read_u64(&slot->window_start);

	*suppressed = 0;
	if (log_refusals < 0)
		return true;
	if (now - start >= LOG_WINDOW_MS * INT64CONST(1000) &&
		pg_atomic_compare_exchange_u64(&slot->window_start, &start, now))
		pg_atomic_write_u64(&slot->window_logged, 0);
	if (pg_atomic_fetch_add_u64(&slot->window_logged, 1) >= (uint64) log_refusals)
	{
		pg_atomic_fetch_add_u64(&slot->suppressed, 1);
		return false;
	}
	*suppressed = pg_atomic_exchange_u64(&slot->suppressed, 0);
	return true;
}

/* One line for the server's log alone, with the fields in a fixed order. */
static void
log_refusal(const FencedWrite *write, const Refusal *refusal, uint64 suppressed)
{
	StringInfoData resource;
	StringInfoData application;
	const char *address = client_address();

	initStringInfo(&resource);
	escape_json(&resource, refusal->resource);
	initStringInfo(&application);
	escape_json(&application, application_name ? application_name : "");
	ereport(LOG_SERVER_ONLY,
			(errcode(refusal->sqlstate),
			 errmsg("fence refused a write: code=%s action=%s schema=%s table=%s resource=%s token=" INT64_FORMAT " mark=" INT64_FORMAT " role=%s application=%s client=%s pid=%d suppressed=" UINT64_FORMAT,
					unpack_sql_state(refusal->sqlstate),
					write->advisory ? "reported" : "refused",
					write->rel ? quote_identifier(get_namespace_name(RelationGetNamespace(write->rel))) : "-",
					write->rel ? quote_identifier(RelationGetRelationName(write->rel)) : "-",
					resource.data, refusal->token, refusal->mark,
					quote_identifier(GetUserNameFromId(GetUserId(), false)),
					application.data, address[0] ? address : "-",
					MyProcPid, suppressed),
			 errhidestmt(true), errhidecontext(true),
			 write->rel ? errtable(write->rel) : 0));
}

/* Count, keep and log a refusal, before it is raised. */
void
lockfence_record_refusal(const FencedWrite *write, const Refusal *refusal)
{
	uint64		suppressed = 0;

	if (!track || shared_stats() == NULL)
	{
		if (log_refusals != 0)
			log_refusal(write, refusal, 0);
		return;
	}
	lockfence_count(write->rel, refusal->counter);
	if (write->advisory)
		lockfence_count(write->rel, LOCKFENCE_ADVISORY);
	keep_refusal(write, refusal);
	if (may_log(relation_slot(write->rel), &suppressed))
		log_refusal(write, refusal, suppressed);
}

/* stats_rows(): one row a table, of all databases */
Datum
lockfence_stats_rows(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	lockfence_begin_rows(fcinfo);
	if (shared_stats() == NULL)
		return (Datum) 0;
	for (int i = 0; i < stats->nsets * SET_SIZE; i++)
	{
		TableSlot  *slot = &stats->tables[i];
		uint64		key = pg_atomic_read_u64(&slot->key);
		Datum		values[LOCKFENCE_NCOUNTERS + 4];
		bool		isnull[LOCKFENCE_NCOUNTERS + 4] = {false};
		int			n = 0;

		if (key == 0)
			continue;
		values[n++] = ObjectIdGetDatum((Oid) (key >> 32));
		values[n++] = ObjectIdGetDatum((Oid) key);
		for (int j = 0; j < LOCKFENCE_NCOUNTERS; j++)
			values[n++] = Int64GetDatum((int64) pg_atomic_read_u64(&slot->counters[j]));
		values[n++] = Int64GetDatum((int64) pg_atomic_read_u64(&slot->suppressed));
		values[n++] = TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&slot->last_used));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
	}
	return (Datum) 0;
}

/* Add one row of refusal_rows(). */
static void
put_refusal(ReturnSetInfo *rsinfo, const RefusalSlot *slot)
{
	Datum		values[13];
	bool		isnull[13] = {false};
	int			n = 0;

	values[n++] = Int64GetDatum((int64) slot->number);
	values[n++] = TimestampTzGetDatum(slot->at);
	values[n++] = ObjectIdGetDatum(slot->database);
	values[n++] = ObjectIdGetDatum(slot->table);
	values[n++] = CStringGetTextDatum(unpack_sql_state(slot->sqlstate));
	values[n++] = BoolGetDatum(slot->advisory);
	values[n++] = CStringGetTextDatum(slot->resource);
	isnull[n] = slot->token == 0;
	values[n++] = Int64GetDatum(slot->token);
	isnull[n] = slot->mark == 0;
	values[n++] = Int64GetDatum(slot->mark);
	values[n++] = ObjectIdGetDatum(slot->role);
	values[n++] = CStringGetTextDatum(slot->application_name);
	isnull[n] = slot->client_addr[0] == '\0';
	values[n++] = CStringGetTextDatum(slot->client_addr);
	values[n++] = Int32GetDatum(slot->pid);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

/* refusal_rows(): the ring, in no order */
Datum
lockfence_refusal_rows(PG_FUNCTION_ARGS)
{
	lockfence_begin_rows(fcinfo);
	if (shared_stats() == NULL)
		return (Datum) 0;
	for (int i = 0; i < stats->nrefusals; i++)
	{
		RefusalSlot *slot = &refusal_slots()[i];
		RefusalSlot copy;

		SpinLockAcquire(&slot->mutex);
		copy = *slot;
		SpinLockRelease(&slot->mutex);
		if (copy.number != 0)
			put_refusal((ReturnSetInfo *) fcinfo->resultinfo, &copy);
	}
	return (Datum) 0;
}

/* stats_info(): what is kept at all, and since when */
Datum
lockfence_stats_info(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum		values[5] = {0};
	bool		isnull[5] = {false, true, true, true, true};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = BoolGetDatum(shared_stats() != NULL);
	if (stats != NULL)
	{
		memset(isnull, false, sizeof(isnull));
		values[1] = Int64GetDatum((int64) stats->nsets * SET_SIZE);
		values[2] = Int64GetDatum((int64) pg_atomic_read_u64(&stats->evicted));
		values[3] = Int64GetDatum((int64) pg_atomic_read_u64(&stats->refusals));
		values[4] = TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&stats->reset_at));
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, isnull)));
}

/* stats_reset(): every counter and the ring, of all databases */
Datum
lockfence_stats_reset(PG_FUNCTION_ARGS)
{
	if (shared_stats() == NULL)
		PG_RETURN_VOID();
	for (int i = 0; i < stats->nsets * SET_SIZE; i++)
		clear_slot(&stats->tables[i]);
	for (int i = 0; i < stats->nrefusals; i++)
	{
		RefusalSlot *slot = &refusal_slots()[i];

		SpinLockAcquire(&slot->mutex);
		slot->number = 0;
		SpinLockRelease(&slot->mutex);
	}
	pg_atomic_write_u64(&stats->evicted, 0);
	pg_atomic_write_u64(&stats->reset_at, (uint64) GetCurrentTimestamp());
	PG_RETURN_VOID();
}
