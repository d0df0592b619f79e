/*
 * state.c
 *		What holds for every resource at once: the epoch and the floor.
 *
 * Both are rows of lockfence.state and are mostly absent.  The epoch is
 * asked for on every check, so each backend caches it until the table's
 * relcache entry is invalidated, which a trigger on the table sees to.  The
 * cache may lag behind a commit by the time it takes to send the message:
 * a write that passes then is concurrent with set_epoch(), and the marks
 * still keep the tokens of its resource in order.
 *
 * The floor stands in for marks that were folded.  It must never lag behind
 * the removal of a mark, so it is read afresh, after the mark was found to
 * be missing.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "lockfence.h"
#include "storage/sinval.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

/* columns of lockfence.state */
#define STATE_ATTNO_NAME	1
#define STATE_ATTNO_VALUE	2

#define NO_EPOCH	(-1)

PG_FUNCTION_INFO_V1(lockfence_state_changed);

static Oid	state_relid = InvalidOid;	/* of the cached epoch */
static int	cached_epoch = NO_EPOCH;
static bool epoch_is_cached = false;

/* A relcache entry has changed: set the flag, do no more. */
static void
forget_epoch(Datum arg, Oid relid)
{
	if (relid == state_relid || !OidIsValid(relid))
		epoch_is_cached = false;
}

/* Called once a backend. */
void
lockfence_state_init(void)
{
	CacheRegisterRelcacheCallback(forget_epoch, (Datum) 0);
}

/* The committed value of a row of lockfence.state, or the given default. */
static int64
read_state(const char *name, int64 absent)
{
	int64		value = absent;
	Relation	rel;
	Snapshot	snapshot;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	state_relid = lockfence_relation_oid("state");
	rel = table_open(state_relid, AccessShareLock);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyInit(&key, STATE_ATTNO_NAME, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(name));
	scan = systable_beginscan(rel, InvalidOid, false, snapshot, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;

		value = DatumGetInt64(heap_getattr(tuple, STATE_ATTNO_VALUE,
										   RelationGetDescr(rel), &isnull));
		Assert(!isnull);
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return value;
}

/* The current epoch, or -1 where any epoch is accepted. */
int
lockfence_state_epoch(void)
{
	AcceptInvalidationMessages();
	while (!epoch_is_cached)
	{
		/* set first: a message that comes during the read must clear it again */
		epoch_is_cached = true;
		cached_epoch = (int) read_state("epoch", NO_EPOCH);
	}
	return cached_epoch;
}

/* The token that stands for the mark of a resource without one; 0: none. */
FenceToken
lockfence_state_floor(void)
{
	return read_state("floor", 0);
}

/*
 * Row trigger on lockfence.state: tell every backend that it changed, and have
 * it survive a crash.  What it fences out must stay out as by an advance.
 */
Datum
lockfence_state_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	lockfence_require_trigger(fcinfo);
	CacheInvalidateRelcache(trigger->tg_relation);
	ForceSyncCommit();
	return PointerGetDatum(NULL);
}
