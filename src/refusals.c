/*
 * refusals.c
 *		A refusal as administrators see it: in the ring of the last ones, in shared
 *		memory, and in the server's log.
 *
 * A slot of the ring is written under a spinlock of its own.
 *
 * The log has one line per refusal, in a fixed form, up to a number per minute and
 * table.  Beyond it, the error that goes to the client is kept out of the log
 * as well, or a stale holder that tries again and again could fill a disk; the
 * next line tells how many were held back.  The report of an advisory fence
 * goes to clients only: its line tells all of it.
 */
#include "postgres.h"

#include <limits.h>

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "storage/lock.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "check.h"
#include "client.h"
#include "compat.h"
#include "keptname.h"
#include "lockfence.h"
#include "refusals.h"
#include "refuse.h"
#include "rows.h"
#include "shmem.h"
#include "stats.h"
#include "visible.h"

#define DEFAULT_MAX_REFUSALS 1024

/* A table's refusals are logged one by one up to a number in this time. */
#define LOG_WINDOW_US		(60 * USECS_PER_SEC)

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
	bool		advisory;
	KeptName	resource;
	SessionClient client;
} RefusalSlot;

typedef struct Ring
{
	int			size;
	pg_atomic_uint64 last;		/* number given out */
	pg_atomic_uint64 forgotten; /* ... when the ring was emptied */
	pg_atomic_uint64 overwritten;
	RefusalSlot slots[FLEXIBLE_ARRAY_MEMBER];
} Ring;

PG_FUNCTION_INFO_V1(lockfence_refusal_rows);

/* settings */
static int	max_refusals = DEFAULT_MAX_REFUSALS;
static int	log_refusals = 10;

static Ring *ring = NULL;

/* SQLSTATE of the error that follows, if the server's log is to be spared it. */
static int	hidden_code = 0;
static emit_log_hook_type previous_log_hook = NULL;

/* How much shared memory the ring takes, in bytes. */
static Size
memory_size(void)
{
	return add_size(offsetof(Ring, slots), mul_size(max_refusals, sizeof(RefusalSlot)));
}

/* Make new memory ready for use. */
static void
init_memory(void *memory)
{
	Ring	   *fresh = (Ring *) memory;

	fresh->size = max_refusals;
	pg_atomic_init_u64(&fresh->last, 0);
	pg_atomic_init_u64(&fresh->forgotten, 0);
	pg_atomic_init_u64(&fresh->overwritten, 0);
	for (int i = 0; i < fresh->size; i++)
	{
		SpinLockInit(&fresh->slots[i].mutex);
		fresh->slots[i].number = 0;
	}
}

const SharedSegment lockfence_refusals_segment = {memory_size, init_memory};

/* The ring, or NULL where there is no memory for it. */
static Ring *
shared_ring(void)
{
	if (ring == NULL)
		ring = lockfence_look_at_memory(&lockfence_refusals_segment);
	return ring;
}

/* Keep what was just refused out of the log, where that was decided. */
static void
filter_log(ErrorData *edata)
{
	if (hidden_code != 0 && edata->sqlerrcode == hidden_code)
	{
		hidden_code = 0;
		edata->output_to_server = false;
	}
	if (previous_log_hook)
		previous_log_hook(edata);
}

static bool
check_max_refusals(int *newval, void **extra, GucSource source)
{
	return lockfence_settle_size(newval, DEFAULT_MAX_REFUSALS);
}

/* Called once per backend, or by the postmaster. */
void
lockfence_refusals_init(void)
{
	DefineCustomIntVariable("lockfence.max_refusals",
							"Sets how many of the last refusals are kept.",
							NULL, &max_refusals, DEFAULT_MAX_REFUSALS, 1, 1 << 20,
							lockfence_size_context(), 0, check_max_refusals, NULL, NULL);
	DefineCustomIntVariable("lockfence.log_refusals",
							"Sets how many refusals of a table are logged in a minute.",
							"Those beyond are counted, and their number is told by the next line. 0 logs none, -1 all.",
							&log_refusals, 10, -1, INT_MAX,
							PGC_SUSET, 0, NULL, NULL, NULL);
	previous_log_hook = emit_log_hook;
	emit_log_hook = filter_log;
}

/* Put a refusal into the ring, over the oldest. */
static void
keep_refusal(const FencedWrite *write, const Refusal *refusal)
{
	uint64		number = pg_atomic_fetch_add_u64(&ring->last, 1) + 1;
	RefusalSlot *slot = &ring->slots[number % ring->size];
	bool		overwrites;
	TimestampTz now = GetCurrentTimestamp();
	SessionClient client = lockfence_this_client();
	KeptName	resource = lockfence_keep_name(refusal->resource);

	SpinLockAcquire(&slot->mutex);
	overwrites = slot->number != 0;
	/* of two that race for the slot, the older one is lost */
	if (slot->number < number)
	{
		slot->number = number;
		slot->at = now;
		slot->database = MyDatabaseId;
		slot->table = write->rel ? RelationGetRelid(write->rel) : InvalidOid;
		slot->sqlstate = refusal->sqlstate;
		slot->token = refusal->token;
		slot->mark = refusal->mark;
		slot->advisory = write->advisory;
		slot->resource = resource;
		slot->client = client;
	}
	SpinLockRelease(&slot->mutex);
	if (overwrites)
		pg_atomic_fetch_add_u64(&ring->overwritten, 1);
}

/* How many refusals can be kept, were recorded, and were overwritten. */
RefusalTotals
lockfence_refusal_totals(void)
{
	RefusalTotals totals = {0};

	if (shared_ring() == NULL)
		return totals;
	totals.capacity = ring->size;
	totals.recorded = pg_atomic_read_u64(&ring->last) - pg_atomic_read_u64(&ring->forgotten);
	totals.overwritten = pg_atomic_read_u64(&ring->overwritten);
	return totals;
}

/* Empty the ring; the numbers go on. */
void
lockfence_forget_refusals(void)
{
	if (shared_ring() == NULL)
		return;
	pg_atomic_write_u64(&ring->forgotten, pg_atomic_read_u64(&ring->last));
	pg_atomic_write_u64(&ring->overwritten, 0);
	for (int i = 0; i < ring->size; i++)
	{
		SpinLockAcquire(&ring->slots[i].mutex);
		ring->slots[i].number = 0;
		SpinLockRelease(&ring->slots[i].mutex);
	}
}

/*
 * May one more refusal be logged?  Tells how many were held back since the last
 * that was.
 */
static bool
may_log(LogWindow *window, uint64 *suppressed)
{
	uint64		now = (uint64) GetCurrentTimestamp();
	uint64		start = pg_atomic_read_u64(&window->start);

	*suppressed = 0;
	if (log_refusals < 0)
		return true;
	if (now - start >= LOG_WINDOW_US &&
		pg_atomic_compare_exchange_u64(&window->start, &start, now))
		pg_atomic_write_u64(&window->logged, 0);
	if (pg_atomic_fetch_add_u64(&window->logged, 1) >= (uint64) log_refusals)
	{
		pg_atomic_fetch_add_u64(&window->suppressed, 1);
		return false;
	}
	*suppressed = pg_atomic_exchange_u64(&window->suppressed, 0);
	return true;
}

/* A text in a line of the log: quoted as in JSON, which escapes less than is unseen; null: none. */
static const char *
quote_text(const char *text)
{
	StringInfoData quoted;

	if (text == NULL || text[0] == '\0')
		return "null";
	initStringInfo(&quoted);
	escape_json(&quoted, text);
	return lockfence_visible(quoted.data);
}

/* A token in a line of the log: quoted, lest a reader takes it for a float. */
static const char *
quote_token(FenceToken token)
{
	return token == 0 ? "null" : psprintf("\"" INT64_FORMAT "\"", token);
}

/* One line for the server's log alone, with the fields in a fixed order. */
static void
log_refusal(const FencedWrite *write, const Refusal *refusal, uint64 suppressed)
{
	Relation	rel = write->rel;
	SessionClient client = lockfence_this_client();

	ereport(LOG_SERVER_ONLY,
			(errcode(refusal->sqlstate),
			 errmsg("fence refusal: code=%s action=%s schema=%s table=%s resource=%s token=%s mark=%s role=%s application=%s client=%s pid=%d suppressed=" UINT64_FORMAT,
					unpack_sql_state(refusal->sqlstate),
					write->advisory ? "reported" : "refused",
					quote_text(rel ? get_namespace_name(RelationGetNamespace(rel)) : NULL),
					quote_text(rel ? RelationGetRelationName(rel) : NULL),
					quote_text(refusal->resource),
					quote_token(refusal->token), quote_token(refusal->mark),
					quote_text(GetUserNameFromId(client.role, true)),
					quote_text(client.application_name), quote_text(client.address),
					client.pid, suppressed),
			 errhidestmt(true), errhidecontext(true),
			 rel ? errtable(rel) : 0));
}

/* What counts refusals of that SQLSTATE. */
static LockfenceCounter
counter_of(int sqlstate)
{
	switch (sqlstate)
	{
#define REFUSAL(name, tens, ones, condition, counter, column, when, remedy) \
		case ERRCODE_##name: \
			return LOCKFENCE_##counter;
#include "refusals.def"
	}
	elog(ERROR, "no refusal has SQLSTATE %s", unpack_sql_state(sqlstate));
}

static void
count_refusal(const FencedWrite *write, const Refusal *refusal)
{
	LockfenceCounter counter = counter_of(refusal->sqlstate);

	if (!write->advisory)
		lockfence_count(write->rel, counter);
	else
	{
		lockfence_count(write->rel, LOCKFENCE_ADVISORY);
		if (counter == LOCKFENCE_STALE)
			lockfence_count(write->rel, LOCKFENCE_ADVISORY_STALE);
	}
}

/* Count, keep and log a refusal, before it is raised. */
void
lockfence_record_refusal(const FencedWrite *write, const Refusal *refusal)
{
	uint64		suppressed;

	count_refusal(write, refusal);
	if (lockfence_tracks() && shared_ring() != NULL)
		keep_refusal(write, refusal);

	hidden_code = 0;
	if (may_log(lockfence_log_window(write->rel), &suppressed))
		log_refusal(write, refusal, suppressed);
	else if (log_refusals != 0)
		hidden_code = refusal->sqlstate;
	if (write->advisory)
		hidden_code = refusal->sqlstate;
}

/* Add one row of _refusals(). */
static void
put_refusal(ReturnSetInfo *rsinfo, RefusalSlot *slot)
{
	Datum		values[9 + CLIENT_COLUMNS];
	bool		isnull[9 + CLIENT_COLUMNS] = {false};
	int			n = 0;

	values[n++] = Int64GetDatum((int64) slot->number);
	values[n++] = TimestampTzGetDatum(slot->at);
	values[n++] = ObjectIdGetDatum(slot->database);
	values[n++] = ObjectIdGetDatum(slot->table);
	values[n++] = CStringGetTextDatum(unpack_sql_state(slot->sqlstate));
	values[n++] = BoolGetDatum(slot->advisory);
	isnull[n] = slot->resource.text[0] == '\0';
	values[n++] = lockfence_kept_name(&slot->resource);
	isnull[n] = slot->token == 0;
	values[n++] = Int64GetDatum(slot->token);
	isnull[n] = slot->mark == 0;
	values[n++] = Int64GetDatum(slot->mark);
	lockfence_client_columns(&slot->client, values + n, isnull + n);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

/* _refusals(): the ring, in no order */
Datum
lockfence_refusal_rows(PG_FUNCTION_ARGS)
{
	lockfence_begin_rows(fcinfo);
	if (shared_ring() == NULL)
		return (Datum) 0;
	for (int i = 0; i < ring->size; i++)
	{
		RefusalSlot *slot = &ring->slots[i];
		RefusalSlot copy;

		CHECK_FOR_INTERRUPTS();
		SpinLockAcquire(&slot->mutex);
		copy = *slot;
		SpinLockRelease(&slot->mutex);
		if (copy.number != 0)
			put_refusal((ReturnSetInfo *) fcinfo->resultinfo, &copy);
	}
	return (Datum) 0;
}
