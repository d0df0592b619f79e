/*
 * state.c
 *		The state that concerns all resources: the epoch, the minimum, the floor,
 *		and the recorded timeline.
 *
 * All are rows of lockfence.state; except for the timeline, they are mostly absent.
 * Every check needs the epoch and the minimum, a token below which none is accepted
 * any more.  So each backend caches the two until the table's relcache entry is
 * invalidated, which a trigger on the table does.  The cache may lag behind a
 * commit for as long as it takes to send the message: a write that passes then is
 * concurrent with set_epoch() or reopen(), and the marks still keep the tokens of
 * its resource in order.
 *
 * The floor stands for marks that were folded.  It must never lag behind the removal
 * of a mark, so it is read anew, after the mark was found to be missing.
 *
 * The name of the timeline's row contains the system identifier of its cluster, so
 * that a row which pg_upgrade brings, or which comes in an unforeseen way, is not
 * taken for this cluster's own.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/indexing.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "storage/lmgr.h"
#include "storage/sinval.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

#include "args.h"
#include "compat.h"
#include "durable.h"
#include "intact.h"
#include "latest.h"
#include "lockfence.h"
#include "relation.h"
#include "state.h"

/* columns of lockfence.state */
#define STATE_ATTNO_NAME	1
#define STATE_ATTNO_VALUE	2
#define STATE_NATTS			2

#define NO_EPOCH	(-1)

#define TIMELINE_PREFIX	"timeline:"

PG_FUNCTION_INFO_V1(lockfence_state_changed);

static Oid	state_relid = InvalidOid;	/* the table that is cached */
static uint64 changes = 1;		/* of the table, as far as this backend knows */
static uint64 cached_changes = 0;	/* at which the cache is valid; 0: it is empty */
static int	cached_epoch = NO_EPOCH;
static FenceToken cached_minimum = 0;

/* Have epoch and minimum read again. */
void
lockfence_state_forget(void)
{
	changes++;
}

/* Does an invalidation of the relation, or of all relations, concern the table? */
bool
lockfence_is_state(Oid relid)
{
	return relid == state_relid || !OidIsValid(relid);
}

/* A relcache entry has changed. */
void
lockfence_state_at_relcache(Oid relid)
{
	if (lockfence_is_state(relid))
		lockfence_state_forget();
}

/* Open lockfence.state, and note which relation it is. */
static Relation
open_state(LOCKMODE mode)
{
	Relation	rel = lockfence_open_relation("state", mode);

	state_relid = RelationGetRelid(rel);
	lockfence_require_readable(rel);
	return rel;
}

/* The committed value of a row of lockfence.state, or the given default. */
static int64
read_state(const char *name, int64 absent)
{
	int64		value = absent;
	Relation	rel;
	LatestScan	scan;
	ScanKeyData key;
	HeapTuple	tuple;

	rel = open_state(AccessShareLock);
	ScanKeyInit(&key, STATE_ATTNO_NAME, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(name));
	lockfence_latest_begin(&scan, rel, InvalidOid, 1, &key);
	tuple = lockfence_latest_next(&scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;

		value = DatumGetInt64(heap_getattr(tuple, STATE_ATTNO_VALUE,
										   RelationGetDescr(rel), &isnull));
		Assert(!isnull);
	}
	lockfence_latest_end(&scan);
	table_close(rel, AccessShareLock);
	return value;
}

/*
 * Bring the cache up to what was committed last.  It is valid from the moment in
 * which all of it has been read, so that an error meanwhile leaves it as it was; it
 * is not valid if a message came meanwhile.
 */
static void
fill_cache(void)
{
	AcceptInvalidationMessages();
	while (cached_changes != changes)
	{
		uint64		before = changes;
		int			epoch = (int) read_state("epoch", NO_EPOCH);
		FenceToken	minimum = read_state("minimum", 0);

		cached_epoch = epoch;
		cached_minimum = minimum;
		cached_changes = before;
	}
}

/* The current epoch, or -1 if any epoch is accepted. */
int
lockfence_state_epoch(void)
{
	fill_cache();
	return cached_epoch;
}

/* The token below which none is accepted; 0: none.  Call it right after lockfence_state_epoch(). */
FenceToken
lockfence_state_minimum(void)
{
	return cached_minimum;
}

/* The token that stands for the mark of a resource without one; 0: none. */
FenceToken
lockfence_state_floor(void)
{
	return read_state("floor", 0);
}

/* Take the timeline from a row, if it records one; this cluster's own takes precedence. */
static void
note_timeline(RecordedTimeline *recorded, Relation rel, HeapTuple tuple)
{
	TupleDesc	tupdesc = RelationGetDescr(rel);
	bool		isnull;
	char	   *name = TextDatumGetCString(heap_getattr(tuple, STATE_ATTNO_NAME,
														tupdesc, &isnull));

	if (strncmp(name, TIMELINE_PREFIX, strlen(TIMELINE_PREFIX)) != 0 ||
		(recorded->found && !recorded->other_system))
		return;
	recorded->found = true;
	recorded->other_system =
		strcmp(name, psprintf(TIMELINE_PREFIX UINT64_FORMAT, GetSystemIdentifier())) != 0;
	recorded->timeline = (TimeLineID) DatumGetInt64(heap_getattr(tuple, STATE_ATTNO_VALUE,
																 tupdesc, &isnull));
	recorded->uncommitted = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
	recorded->tid = tuple->t_self;
}

/* The recorded timeline, and whether it is this cluster's. */
RecordedTimeline
lockfence_state_timeline(void)
{
	RecordedTimeline recorded = {0};
	Relation	rel;
	LatestScan	scan;
	HeapTuple	tuple;

	rel = open_state(AccessShareLock);
	lockfence_latest_begin(&scan, rel, InvalidOid, 0, NULL);
	while (HeapTupleIsValid(tuple = lockfence_latest_next(&scan)))
		note_timeline(&recorded, rel, tuple);
	lockfence_latest_end(&scan);
	table_close(rel, AccessShareLock);
	return recorded;
}

/* The row that records the timeline. */
static HeapTuple
form_timeline(Relation rel, TimeLineID timeline)
{
	NullableDatum columns[STATE_NATTS] = {
		[STATE_ATTNO_NAME - 1].value =
		CStringGetTextDatum(psprintf(TIMELINE_PREFIX UINT64_FORMAT, GetSystemIdentifier())),
		[STATE_ATTNO_VALUE - 1].value = Int64GetDatum((int64) timeline)
	};

	return lockfence_form_row(rel, columns, STATE_NATTS);
}

/*
 * Record the timeline in place of what was read, unless another session is doing
 * so or has done so since: this must neither wait nor fail.  A row of another
 * cluster becomes this one's.
 *
 * At commit no snapshot is left, but writing a row needs one: what it replaces may
 * be stored out of line.
 */
bool
lockfence_state_try_timeline(const RecordedTimeline *recorded, TimeLineID timeline)
{
	Relation	rel;
	Snapshot	snapshot;
	bool		locked;

	if (!ConditionalLockRelationOid(state_relid, RowExclusiveLock))
		return false;
	rel = try_table_open(state_relid, NoLock);
	if (rel == NULL)
		return false;
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	locked = lockfence_is_intact(rel) &&
		lockfence_latest_lock(rel, &recorded->tid, LockTupleExclusive, LockWaitSkip);
	if (locked)
	{
		ItemPointerData tid = recorded->tid;

		CatalogTupleUpdate(rel, &tid, form_timeline(rel, timeline));
	}
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	return locked;
}

/*
 * Record the timeline, after waiting for transactions that change the table; its
 * lock keeps others from changing it until the end of the transaction.  Returns
 * what was recorded before.
 */
RecordedTimeline
lockfence_state_set_timeline(TimeLineID timeline)
{
	RecordedTimeline recorded;
	Relation	rel = open_state(ShareRowExclusiveLock);

	lockfence_require_intact(rel);
	recorded = lockfence_state_timeline();
	if (!recorded.found)
		CatalogTupleInsert(rel, form_timeline(rel, timeline));
	else if (recorded.other_system || recorded.timeline != timeline)
	{
		/* a version of this very command could not be updated */
		CommandCounterIncrement();
		CatalogTupleUpdate(rel, &recorded.tid, form_timeline(rel, timeline));
	}
	CommandCounterIncrement();
	table_close(rel, NoLock);
	return recorded;
}

/*
 * Row trigger on lockfence.state: notify every backend of the change, and make it
 * durable.  What it fences out must stay out, as after an advance.
 */
Datum
lockfence_state_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	lockfence_require_trigger(fcinfo);
	CacheInvalidateRelcache(trigger->tg_relation);
	lockfence_commit_durably();
	return PointerGetDatum(NULL);
}
