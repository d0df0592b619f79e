/*
 * refusals.c
 *		A refusal as administrators see it: in the rings of the last ones, in shared
 *		memory, and in the server's log.
 *
 * There is a ring for stale tokens and one for all others.  A slot of a ring is
 * written under a spinlock of its own.
 *
 * The log has one line per refusal, in a fixed form, up to a number per minute,
 * table and class.  Beyond it, the error that goes to the client is kept out of the log
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
#include "compat.h"
#include "lockfence.h"
#include "offenders.h"
#include "overlap.h"
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
	uint64		number;			/* counted from 1 over both rings; 0: empty */
	RecordedRefusal refusal;
} RefusalSlot;

/* What happened to a ring since it was emptied. */
typedef struct RingTotals
{
	pg_atomic_uint64 written;
	pg_atomic_uint64 overwritten;
} RingTotals;

typedef struct Rings
{
	int			size;			/* of each */
	pg_atomic_uint64 last;		/* number given out */
	pg_atomic_uint64 position[NREFUSAL_CLASSES];	/* slots given out */
	RingTotals	totals[NREFUSAL_CLASSES];
	RefusalSlot slots[FLEXIBLE_ARRAY_MEMBER];	/* one ring after the other */
} Rings;

PG_FUNCTION_INFO_V1(lockfence_refusal_rows);

/* settings */
static int	max_refusals = DEFAULT_MAX_REFUSALS;
static int	log_refusals = 10;

static Rings *rings = NULL;

/* SQLSTATE of the error that follows, if the server's log is to be spared it. */
static int	hidden_code = 0;
static emit_log_hook_type previous_log_hook = NULL;

/* How much shared memory the rings take, in bytes. */
static Size
memory_size(void)
{
	return add_size(offsetof(Rings, slots),
					mul_size(mul_size(NREFUSAL_CLASSES, max_refusals), sizeof(RefusalSlot)));
}

/* Make new memory ready for use. */
static void
init_memory(void *memory)
{
	Rings	   *fresh = (Rings *) memory;

	fresh->size = max_refusals;
	pg_atomic_init_u64(&fresh->last, 0);
	for (int i = 0; i < NREFUSAL_CLASSES; i++)
	{
		pg_atomic_init_u64(&fresh->position[i], 0);
		pg_atomic_init_u64(&fresh->totals[i].written, 0);
		pg_atomic_init_u64(&fresh->totals[i].overwritten, 0);
	}
	for (int i = 0; i < NREFUSAL_CLASSES * fresh->size; i++)
	{
		SpinLockInit(&fresh->slots[i].mutex);
		fresh->slots[i].number = 0;
	}
}

const SharedSegment lockfence_refusals_segment = {memory_size, init_memory};

/* The rings, or NULL where there is no memory for them. */
static Rings *
shared_rings(void)
{
	if (rings == NULL)
		rings = lockfence_look_at_memory(&lockfence_refusals_segment);
	return rings;
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
							"So many by stale tokens, and as many of all others.", &max_refusals, DEFAULT_MAX_REFUSALS, 1, 1 << 20,
							lockfence_size_context(), 0, check_max_refusals, NULL, NULL);
	DefineCustomIntVariable("lockfence.log_refusals",
							"Sets how many refusals of a table are logged in a minute.",
							"So many by stale tokens, and as many of all others. Those beyond are counted, and their number is told by the next line. 0 logs none, -1 all.",
							&log_refusals, 10, -1, INT_MAX,
							PGC_SUSET, 0, NULL, NULL, NULL);
	previous_log_hook = emit_log_hook;
	emit_log_hook = filter_log;
}

/* Put a refusal into the ring of its class, over the oldest. */
static void
keep_refusal(RefusalClass class, const RecordedRefusal *refusal)
{
	uint64		number = pg_atomic_fetch_add_u64(&rings->last, 1) + 1;
	uint64		position = pg_atomic_fetch_add_u64(&rings->position[class], 1);
	RefusalSlot *slot = &rings->slots[class * rings->size + position % rings->size];
	bool		overwrites;

	SpinLockAcquire(&slot->mutex);
	overwrites = slot->number != 0;
	/* of two that race for the slot, the older one is lost */
	if (slot->number < number)
	{
		slot->number = number;
		slot->refusal = *refusal;
	}
	SpinLockRelease(&slot->mutex);
	pg_atomic_fetch_add_u64(&rings->totals[class].written, 1);
	if (overwrites)
		pg_atomic_fetch_add_u64(&rings->totals[class].overwritten, 1);
}

/* How many refusals of the class can be kept, are kept, and were overwritten. */
KeptTotals
lockfence_refusal_totals(RefusalClass class)
{
	KeptTotals	totals = {0};

	if (shared_rings() == NULL)
		return totals;
	totals.capacity = rings->size;
	totals.evicted = pg_atomic_read_u64(&rings->totals[class].overwritten);
	totals.used = pg_atomic_read_u64(&rings->totals[class].written) - totals.evicted;
	return totals;
}

/* Empty the rings; the numbers go on. */
void
lockfence_forget_refusals(void)
{
	if (shared_rings() == NULL)
		return;
	for (int i = 0; i < NREFUSAL_CLASSES; i++)
	{
		pg_atomic_write_u64(&rings->totals[i].written, 0);
		pg_atomic_write_u64(&rings->totals[i].overwritten, 0);
	}
	for (int i = 0; i < NREFUSAL_CLASSES * rings->size; i++)
	{
		SpinLockAcquire(&rings->slots[i].mutex);
		rings->slots[i].number = 0;
		SpinLockRelease(&rings->slots[i].mutex);
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
log_refusal(const FencedWrite *write, const Refusal *refusal, const SessionClient *client, uint64 suppressed)
{
	Relation	rel = write->rel;

	ereport(LOG_SERVER_ONLY,
			(errcode(refusal->sqlstate),
			 errmsg("fence refusal: code=%s action=%s schema=%s table=%s resource=%s token=%s mark=%s role=%s application=%s client=%s pid=%d suppressed=" UINT64_FORMAT,
					unpack_sql_state(refusal->sqlstate),
					write->advisory ? "reported" : "refused",
					quote_text(rel ? get_namespace_name(RelationGetNamespace(rel)) : NULL),
					quote_text(rel ? RelationGetRelationName(rel) : NULL),
					quote_text(refusal->resource),
					quote_token(refusal->token), quote_token(refusal->mark),
					quote_text(GetUserNameFromId(client->role, true)),
					quote_text(client->application_name), quote_text(client->address),
					client->pid, suppressed),
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
	return LOCKFENCE_ADVISORY;	/* of an error that an advisory fence reports */
}

static void
count_refusal(const FencedWrite *write, const Refusal *refusal)
{
	LockfenceCounter counter = counter_of(refusal->sqlstate);

	lockfence_count(write->rel, write->advisory ? LOCKFENCE_ADVISORY : counter);
	if (write->advisory && counter == LOCKFENCE_STALE)
		lockfence_count(write->rel, LOCKFENCE_ADVISORY_STALE);
}

/* Log a refusal if it may be; tell the log of the error that follows. */
static void
log_within_limit(const FencedWrite *write, const Refusal *refusal, RefusalClass class, const SessionClient *client)
{
	uint64		suppressed;

	hidden_code = 0;
	if (may_log(lockfence_log_window(write->rel, class), &suppressed))
		log_refusal(write, refusal, client, suppressed);
	else if (log_refusals != 0)
		hidden_code = refusal->sqlstate;
	if (write->advisory)
		hidden_code = refusal->sqlstate;
}

/* Count, keep and log a refusal, before it is raised. */
void
lockfence_record_refusal(const FencedWrite *write, const Refusal *refusal)
{
	RefusalClass class = counter_of(refusal->sqlstate) == LOCKFENCE_STALE ? STALE_REFUSALS : OTHER_REFUSALS;
	RecordedRefusal record = {
		.at = GetCurrentTimestamp(),
		.database = MyDatabaseId,
		.table = write->rel ? RelationGetRelid(write->rel) : InvalidOid,
		.sqlstate = refusal->sqlstate,
		.token = refusal->token,
		.mark = refusal->mark,
		.advisory = write->advisory,
		.resource = lockfence_keep_name(refusal->resource),
		.client = lockfence_this_client()
	};

	count_refusal(write, refusal);
	if (class == STALE_REFUSALS)
		lockfence_measure_overlap(write, refusal);
	if (lockfence_tracks() && shared_rings() != NULL)
	{
		keep_refusal(class, &record);
		lockfence_count_offender(class, &record);
	}
	log_within_limit(write, refusal, class, &record.client);
}

/* Add one row of _refusals(). */
static void
put_refusal(ReturnSetInfo *rsinfo, const RefusalSlot *slot)
{
	const RecordedRefusal *refusal = &slot->refusal;
	Datum		values[9 + CLIENT_COLUMNS];
	bool		isnull[9 + CLIENT_COLUMNS] = {false};
	int			n = 0;

	values[n++] = Int64GetDatum((int64) slot->number);
	values[n++] = TimestampTzGetDatum(refusal->at);
	values[n++] = ObjectIdGetDatum(refusal->database);
	values[n++] = ObjectIdGetDatum(refusal->table);
	values[n++] = CStringGetTextDatum(unpack_sql_state(refusal->sqlstate));
	values[n++] = BoolGetDatum(refusal->advisory);
	isnull[n] = refusal->resource.text[0] == '\0';
	values[n++] = lockfence_kept_name(&refusal->resource);
	isnull[n] = refusal->token == 0;
	values[n++] = Int64GetDatum(refusal->token);
	isnull[n] = refusal->mark == 0;
	values[n++] = Int64GetDatum(refusal->mark);
	lockfence_client_columns(&refusal->client, values + n, isnull + n);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

/* _refusals(): the rings, in no order */
Datum
lockfence_refusal_rows(PG_FUNCTION_ARGS)
{
	lockfence_begin_rows(fcinfo);
	if (shared_rings() == NULL)
		return (Datum) 0;
	for (int i = 0; i < NREFUSAL_CLASSES * rings->size; i++)
	{
		RefusalSlot *slot = &rings->slots[i];
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
