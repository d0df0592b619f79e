/*
 * mark.c
 *		The only reader and writer of lockfence.mark.
 *
 * A mark is read by index with a dirty snapshot: never the transaction's
 * own, which may be older than the newest mark.  The scan stays open, and
 * with it a pin on the tuple's page, so that after taking the resource's lock
 * the reader can ask cheaply whether the very version that it read is still
 * the mark (lockfence_mark_unchanged) instead of reading twice.  Where the
 * backend knows which page it was on, the index is not asked (hint.c).
 *
 * An unlocked read can miss a mark that is being moved to another page, so
 * "no mark" counts only when read under the resource's exclusive lock, which
 * every writer of a mark holds while it writes.
 *
 * It also has to mean that the index has no entry for the resource: one that leads
 * to no mark is damage (damage.c).
 *
 * Access is direct, as the extension: neither the caller's privileges nor
 * row-level security come between the fence and its marks.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/multixact.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "lockfence.h"

/* columns of lockfence.mark */
#define MARK_ATTNO_TOKEN		1
#define MARK_ATTNO_ADVANCED_AT	2
#define MARK_ATTNO_RESOURCE		3
#define MARK_NATTS				3

static Oid	mark_relid = InvalidOid;
static Oid	mark_index = InvalidOid;

/*
 * A relcache entry has changed: if it was ours, look the table up again, and
 * trust no cached mark.
 */
static void
forget_mark_relation(Datum arg, Oid relid)
{
	if (relid == mark_relid || relid == mark_index || !OidIsValid(relid))
	{
		mark_relid = mark_index = InvalidOid;
		lockfence_cache_flush();
	}
}

/* Called once a backend. */
void
lockfence_mark_init(void)
{
	CacheRegisterRelcacheCallback(forget_mark_relation, (Datum) 0);
}

/* A relation of the extension, found in its own schema and nowhere else. */
Oid
lockfence_relation_oid(const char *name)
{
	Oid			schema = get_namespace_oid(LOCKFENCE_SCHEMA, true);
	Oid			relid = OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s.%s\" does not exist", LOCKFENCE_SCHEMA, name),
				 errdetail("A fence cannot decide without it, and lets no write pass."),
				 errhint("Create the extension lockfence in this database, or restore what was dropped from it.")));
	return relid;
}

/* Look the table of marks and its index up, unless we know them. */
static void
find_mark_relation(void)
{
	if (!OidIsValid(mark_relid) || !OidIsValid(mark_index))
	{
		Oid			relid = lockfence_relation_oid("mark");
		Oid			index = lockfence_relation_oid("mark_pkey");

		lockfence_require_mark_index(index, relid, MARK_ATTNO_RESOURCE);
		mark_index = index;
		mark_relid = relid;
	}
}

/* The table of marks. */
Oid
lockfence_mark_relid(void)
{
	find_mark_relation();
	return mark_relid;
}

/* Is the trigger that turns DML on marks into ours sure to fire? */
bool
lockfence_mark_is_guarded(const MarkScan *scan)
{
	TriggerDesc *triggers = scan->rel->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (strcmp(triggers->triggers[i].tgname, "~lockfence_mark") == 0)
			return triggers->triggers[i].tgenabled == TRIGGER_FIRES_ALWAYS;
	}
	return false;
}

/* Open the table of marks. */
static void
open_marks(MarkScan *scan)
{
	find_mark_relation();
	scan->rel = table_open(mark_relid, AccessShareLock);
	/* until it was locked, REINDEX CONCURRENTLY could replace its index */
	find_mark_relation();
}

/* Begin to scan the marks for one resource. */
static void
begin_scan(MarkScan *scan, Snapshot snapshot)
{
	ScanKeyData key;

	ScanKeyInit(&key, MARK_ATTNO_RESOURCE, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(scan->resource->name));
	scan->scan = systable_beginscan(scan->rel, mark_index, true, snapshot, 1, &key);
}

/* Does a version bear the resource's name? */
static bool
version_is_of(const MarkScan *scan, HeapTuple tuple)
{
	const char *name = scan->resource->name;
	bool		isnull;
	Datum		value = heap_getattr(tuple, MARK_ATTNO_RESOURCE,
									 RelationGetDescr(scan->rel), &isnull);
	text	   *known = isnull ? NULL : DatumGetTextPP(value);

	return known != NULL && VARSIZE_ANY_EXHDR(known) == strlen(name) &&
		memcmp(VARDATA_ANY(known), name, strlen(name)) == 0;
}

/*
 * The next version that the scan's snapshot sees, or NULL.  As
 * systable_getnext(), but for a look at what each entry of the index leads to.
 */
static HeapTuple
next_version(MarkScan *scan)
{
	IndexScanDesc index = scan->scan->iscan;
	TupleTableSlot *slot = scan->scan->slot;

	/* under ignore_system_indexes */
	if (index == NULL)
		return systable_getnext(scan->scan);

	while (index->xs_heap_continue || index_getnext_tid(index, ForwardScanDirection) != NULL)
	{
		if (index_fetch_heap(index, slot))
		{
			HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, NULL);

			if (!version_is_of(scan, tuple))
				lockfence_report_damage(scan);
			return tuple;
		}
		lockfence_require_row(scan, &index->xs_heaptid);
	}
	return NULL;
}

/* The token in a version of a mark. */
static FenceToken
version_token(const MarkScan *scan, HeapTuple tuple)
{
	bool		isnull;
	FenceToken	token = DatumGetInt64(heap_getattr(tuple, MARK_ATTNO_TOKEN,
												   RelationGetDescr(scan->rel), &isnull));

	if (isnull || token <= 0)
		lockfence_report_damage(scan);
	return token;
}

/* Is this the transaction that wrote the tuple? */
static bool
tuple_is_own(HeapTuple tuple)
{
	return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
}

/* Note what one visible version says of the mark. */
static void
note_version(MarkScan *scan, HeapTuple tuple, Buffer buffer)
{
	FenceToken	token = version_token(scan, tuple);

	if (TransactionIdIsValid(scan->dirty->xmin))
	{
		/* an uncommitted version of another transaction, maybe one of several */
		scan->changing = scan->dirty->xmin;
		scan->pending = Max(scan->pending, token);
		return;
	}
	if (TransactionIdIsValid(scan->dirty->xmax))
		scan->changing = scan->dirty->xmax;
	scan->found = true;
	scan->token = token;
	scan->tid = tuple->t_self;
	scan->version = *tuple;
	scan->buffer = buffer;
	scan->own = tuple_is_own(tuple);
	scan->of_command = scan->own &&
		HeapTupleHeaderGetCmin(tuple->t_data) >= GetCurrentCommandId(false);
}

/* The page's item as a tuple, if it is one that the snapshot shows. */
static bool
fetch_visible(MarkScan *scan, Buffer buffer, HeapTuple tuple)
{
	Page		page = BufferGetPage(buffer);
	OffsetNumber offset = ItemPointerGetOffsetNumber(&tuple->t_self);
	ItemId		item;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page))
		return false;
	item = PageGetItemId(page, offset);
	if (!ItemIdIsNormal(item))
		return false;
	tuple->t_data = (HeapTupleHeader) PageGetItem(page, item);
	tuple->t_len = ItemIdGetLength(item);
	tuple->t_tableOid = RelationGetRelid(scan->rel);
	return HeapTupleSatisfiesVisibility(tuple, scan->dirty, buffer);
}

/*
 * Read the mark from where this backend saw it last; false if it is not there,
 * or if somebody is changing it: that one's version may be anywhere.
 */
static bool
read_hinted(MarkScan *scan)
{
	HeapTupleData tuple;
	Buffer		buffer;
	bool		visible;

	if (!lockfence_hint_find(scan->resource, &tuple.t_self, &buffer) ||
		!lockfence_read_recent_buffer(scan->rel, ItemPointerGetBlockNumber(&tuple.t_self),
									  buffer))
		return false;
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	visible = fetch_visible(scan, buffer, &tuple);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (!visible || TransactionIdIsValid(scan->dirty->xmin) ||
		TransactionIdIsValid(scan->dirty->xmax) || !version_is_of(scan, &tuple))
	{
		ReleaseBuffer(buffer);
		return false;
	}
	note_version(scan, &tuple, buffer);
	return true;
}

/*
 * Read the mark by the index.  Where another transaction is changing it, go on
 * to the version which that one wrote.
 */
static void
read_indexed(MarkScan *scan)
{
	HeapTuple	tuple;

	begin_scan(scan, scan->dirty);
	while (HeapTupleIsValid(tuple = next_version(scan)))
	{
		note_version(scan, tuple, ((BufferHeapTupleTableSlot *) scan->scan->slot)->buffer);
		if (!TransactionIdIsValid(scan->changing))
		{
			lockfence_hint_put(scan->resource, &scan->tid, scan->buffer);
			break;
		}
	}
}

/* Read the mark of a resource, and keep the version that was read pinned. */
void
lockfence_mark_begin(MarkScan *scan, const ResourceKey *resource)
{
	memset(scan, 0, sizeof(*scan));
	scan->resource = resource;
	scan->generation = lockfence_cache_generation();
	scan->dirty = palloc(sizeof(SnapshotData));
	InitDirtySnapshot(*scan->dirty);
	open_marks(scan);
	if (!read_hinted(scan))
		read_indexed(scan);
}

/*
 * Is the version that was read still the mark, with nobody changing it?
 * Under the resource's lock the answer stays true until the lock is let go.
 */
bool
lockfence_mark_unchanged(MarkScan *scan)
{
	bool		visible;

	Assert(scan->found);
	LockBuffer(scan->buffer, BUFFER_LOCK_SHARE);
	visible = HeapTupleSatisfiesVisibility(&scan->version, scan->dirty, scan->buffer);
	LockBuffer(scan->buffer, BUFFER_LOCK_UNLOCK);
	return visible && !TransactionIdIsValid(scan->dirty->xmin) &&
		!TransactionIdIsValid(scan->dirty->xmax);
}

/* Lock the version that was read FOR SHARE; false if it is the mark no more. */
bool
lockfence_mark_lock_tuple(MarkScan *scan)
{
	TupleTableSlot *slot;
	TM_FailureData failure;
	TM_Result	result;

	/* an uncommitted version of our own is lock enough */
	if (scan->own)
		return true;

	PreventCommandDuringRecovery("a lock on a fence's mark");

	/* tells lockfence.prepared_holds that the transaction locked a mark */
	LockRelationOid(RelationGetRelid(scan->rel), RowShareLock);
	slot = table_slot_create(scan->rel, NULL);
	result = table_tuple_lock(scan->rel, &scan->tid, scan->dirty, slot,
							  GetCurrentCommandId(true), LockTupleShare,
							  LockWaitBlock, 0, &failure);
	ExecDropSingleTupleTableSlot(slot);
	return result == TM_Ok;
}

/* Add a transaction to the list, if it is another one and still runs. */
static List *
add_locker(List *lockers, TransactionId xid)
{
	if (TransactionIdIsCurrentTransactionId(xid) || !TransactionIdIsInProgress(xid))
		return lockers;
	return lappend_oid(lockers, xid);
}

/*
 * The other transactions that hold a lock on the version that was read, as a
 * list of their ids.  Under the exclusive lock no new ones can come.
 */
List *
lockfence_mark_lockers(MarkScan *scan)
{
	HeapTupleHeader header = scan->version.t_data;
	uint16		infomask = header->t_infomask;
	TransactionId xmax = HeapTupleHeaderGetRawXmax(header);
	MultiXactMember *members;
	List	   *lockers = NIL;
	int			nmembers;

	/* an updater among them has aborted, or the version were not the mark */
	if (infomask & HEAP_XMAX_INVALID)
		return NIL;
	if (!(infomask & HEAP_XMAX_IS_MULTI))
		return add_locker(NIL, xmax);

	nmembers = GetMultiXactIdMembers(xmax, &members, false,
									 HEAP_XMAX_IS_LOCKED_ONLY(infomask));
	for (int i = 0; i < nmembers; i++)
		lockers = add_locker(lockers, members[i].xid);
	return lockers;
}

/* The mark's new version; columns that somebody has added stay null. */
static HeapTuple
form_mark(MarkScan *scan, FenceToken token)
{
	int			natts = RelationGetNumberOfAttributes(scan->rel);
	Datum	   *values = palloc0(natts * sizeof(Datum));
	bool	   *isnull = palloc(natts * sizeof(bool));

	for (int i = 0; i < natts; i++)
		isnull[i] = i >= MARK_NATTS;
	values[MARK_ATTNO_TOKEN - 1] = Int64GetDatum(token);
	values[MARK_ATTNO_ADVANCED_AT - 1] = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
	values[MARK_ATTNO_RESOURCE - 1] = CStringGetTextDatum(scan->resource->name);
	return heap_form_tuple(RelationGetDescr(scan->rel), values, isnull);
}

/*
 * Make the token the mark.  The caller holds the resource's exclusive lock
 * and has made sure that the scan shows the current mark, or that there is
 * none.
 */
void
lockfence_mark_write(MarkScan *scan, FenceToken token)
{
	Relation	rel = table_open(RelationGetRelid(scan->rel), RowExclusiveLock);
	HeapTuple	tuple = form_mark(scan, token);

	lockfence_cache_drop(scan->resource);
	/* a version of this very command could not be updated */
	if (scan->of_command)
		CommandCounterIncrement();
	if (scan->found)
		CatalogTupleUpdate(rel, &scan->tid, tuple);
	else
		CatalogTupleInsert(rel, tuple);
	/* most often the new version is beside the old one */
	if (scan->found && ItemPointerGetBlockNumber(&tuple->t_self) ==
		ItemPointerGetBlockNumber(&scan->tid))
		lockfence_hint_put(scan->resource, &tuple->t_self, scan->buffer);
	heap_freetuple(tuple);
	table_close(rel, NoLock);
}

/* Remove the mark that was read, under the same conditions. */
void
lockfence_mark_remove(MarkScan *scan)
{
	Relation	rel = table_open(RelationGetRelid(scan->rel), RowExclusiveLock);

	lockfence_cache_drop(scan->resource);
	if (scan->of_command)
		CommandCounterIncrement();
	CatalogTupleDelete(rel, &scan->tid);
	table_close(rel, NoLock);
}

/* End the reading; the lock on the table stays to the end of the transaction. */
void
lockfence_mark_end(MarkScan *scan)
{
	if (scan->scan != NULL)
		systable_endscan(scan->scan);
	else
		ReleaseBuffer(scan->buffer);
	pfree(scan->dirty);
	table_close(scan->rel, NoLock);
}

/* The newest committed mark, without any lock, for advice only; 0: none. */
FenceToken
lockfence_mark_peek(const char *resource)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ResourceKey key;
	MarkScan	scan = {.resource = &key};
	FenceToken	token = 0;
	HeapTuple	tuple;

	lockfence_set_resource_key(&key, resource);
	open_marks(&scan);
	begin_scan(&scan, snapshot);
	tuple = systable_getnext(scan.scan);
	if (HeapTupleIsValid(tuple))
		token = version_token(&scan, tuple);
	systable_endscan(scan.scan);
	table_close(scan.rel, NoLock);
	UnregisterSnapshot(snapshot);
	return token;
}
