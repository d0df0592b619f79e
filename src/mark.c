/*
 * mark.c
 *		The only reader and writer of lockfence.mark.
 *
 * A mark is read with a dirty snapshot: never the transaction's own, which
 * may be older than the newest mark.  The tuple's page stays pinned, so that
 * after taking the resource's lock the reader can ask cheaply whether the very
 * version that it read is still the mark (lockfence_mark_unchanged) instead of
 * reading twice.  A transaction that is about to wait unpins the page first.
 *
 * It is looked for where this backend saw it last (hint.c), then by the hash
 * index, then by the primary key.  The first two are guesses: a version counts
 * if it has the resource's full name and no transaction is changing it.  In all
 * other cases the primary key decides.  So the primary key alone
 * tells that there is no mark, or that it is corrupted, and a hash index that is
 * missing or wrong costs time only.
 *
 * An unlocked read can miss a mark that is being moved to another page, so
 * "no mark" counts only when read under the resource's exclusive lock, which
 * every writer of a mark holds while it writes.
 *
 * It must also mean that the key has no entry for the resource: one that leads
 * to no mark is corruption (corruption.c).
 *
 * Access is direct, as the extension: neither the caller's privileges nor
 * row-level security come between the fence and its marks.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "cache.h"
#include "compat.h"
#include "corruption.h"
#include "hint.h"
#include "intact.h"
#include "latest.h"
#include "lockfence.h"
#include "mark.h"
#include "relation.h"
#include "resource.h"

/* columns of lockfence.mark */
#define MARK_ATTNO_TOKEN		1
#define MARK_ATTNO_ADVANCED_AT	2
#define MARK_ATTNO_RESOURCE		LOCKFENCE_MARK_RESOURCE
#define MARK_NATTS				3

/* Does a version have the resource's name? */
static bool
version_is_of(const MarkScan *scan, HeapTuple tuple)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, MARK_ATTNO_RESOURCE,
									 RelationGetDescr(scan->rel), &isnull);
	text	   *known = isnull ? NULL : DatumGetTextPP(value);

	return known != NULL && VARSIZE_ANY_EXHDR(known) == scan->resource->length &&
		memcmp(VARDATA_ANY(known), scan->resource->name, scan->resource->length) == 0;
}

/* The token in a version of a mark. */
static FenceToken
version_token(const MarkScan *scan, HeapTuple tuple)
{
	bool		isnull;
	FenceToken	token = DatumGetInt64(heap_getattr(tuple, MARK_ATTNO_TOKEN,
												   RelationGetDescr(scan->rel), &isnull));

	if (isnull || token <= 0)
		lockfence_report_corruption(scan);
	return token;
}

/*
 * When the transaction began that made the mark what the scan shows; before
 * lockfence_mark_write(), which moves the version.
 */
TimestampTz
lockfence_mark_advanced_at(const MarkScan *scan)
{
	HeapTupleData version = scan->version;
	bool		isnull;

	Assert(scan->found && BufferIsValid(scan->buffer));
	return DatumGetTimestampTz(heap_getattr(&version, MARK_ATTNO_ADVANCED_AT,
											RelationGetDescr(scan->rel), &isnull));
}

/* Is this the transaction that wrote the tuple? */
static bool
tuple_is_own(HeapTuple tuple)
{
	return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
}

/* Record what one visible version says of the mark. */
static void
note_version(MarkScan *scan, HeapTuple tuple)
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
	scan->version = *tuple;
	scan->own = tuple_is_own(tuple);
	scan->of_command = scan->own &&
		HeapTupleHeaderGetCmin(tuple->t_data) >= GetCurrentCommandId(false);
}

/*
 * Is the version that a guess led to the mark?  A name has one mark, so a version
 * with that name is the mark, unless a transaction is changing it: the new version
 * may be anywhere.
 */
static bool
confirm_guess(MarkScan *scan, HeapTuple tuple)
{
	if (TransactionIdIsValid(scan->dirty->xmin) ||
		TransactionIdIsValid(scan->dirty->xmax) || !version_is_of(scan, tuple))
		return false;
	note_version(scan, tuple);
	return true;
}

/* The page's item as a tuple, if it is one that the snapshot shows. */
static bool
fetch_visible(MarkScan *scan, HeapTuple tuple)
{
	Page		page = BufferGetPage(scan->buffer);
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
	return HeapTupleSatisfiesVisibility(tuple, scan->dirty, scan->buffer);
}

/* Read the mark from a place in the pinned page; false if it is not there, or is being changed. */
static bool
read_place(MarkScan *scan, ItemPointerData tid)
{
	HeapTupleData tuple = {.t_self = tid};
	bool		visible;

	LockBuffer(scan->buffer, BUFFER_LOCK_SHARE);
	visible = fetch_visible(scan, &tuple);
	LockBuffer(scan->buffer, BUFFER_LOCK_UNLOCK);
	return visible && confirm_guess(scan, &tuple);
}

/* Read the mark from where this backend saw it last; false if it is not there. */
static bool
read_hinted(MarkScan *scan)
{
	ItemPointerData tid;
	Buffer		buffer;

	if (!lockfence_hint_find(scan->resource, &tid, &buffer) ||
		!lockfence_read_recent_buffer(scan->rel, ItemPointerGetBlockNumber(&tid), buffer))
		return false;
	scan->buffer = buffer;
	return read_place(scan, tid);
}

/* Begin to read the entries that an index has for the resource. */
static IndexScanDesc
begin_entries(MarkScan *scan, Oid index, StrategyNumber equal)
{
	IndexScanDesc entries = lockfence_index_beginscan(scan->rel,
													  index_open(index, AccessShareLock),
													  scan->dirty, 1);
	ScanKeyData key;

	ScanKeyInit(&key, 1, equal, F_TEXTEQ, CStringGetTextDatum(scan->resource->name));
	index_rescan(entries, &key, 1, NULL, 0);
	return entries;
}

/* The next entry, with the page that it leads to pinned; NULL: no more. */
static ItemPointer
next_entry(MarkScan *scan, IndexScanDesc entries)
{
	ItemPointer tid = index_getnext_tid(entries, ForwardScanDirection);

	if (tid != NULL)
		scan->buffer = ReleaseAndReadBuffer(scan->buffer, scan->rel,
											ItemPointerGetBlockNumber(tid));
	return tid;
}

/*
 * The index's lock is not kept, as the table's is, though that would be cheaper:
 * REINDEX locks the table against writers and then waits for the transactions that
 * use the index, and a reader that went on to advance a mark would deadlock with it.
 */
static void
end_entries(IndexScanDesc entries)
{
	Relation	index = entries->indexRelation;

	index_endscan(entries);
	index_close(index, AccessShareLock);
}

/*
 * The first or the next visible version to which an entry leads.  Unlike
 * index_fetch_heap() this takes no slot, and prunes no page: see make_space().
 */
static bool
next_version(MarkScan *scan, IndexScanDesc entries, HeapTuple tuple, bool first)
{
	bool		found;
	bool		all_dead = false;

	LockBuffer(scan->buffer, BUFFER_LOCK_SHARE);
	found = heap_hot_search_buffer(&entries->xs_heaptid, scan->rel, scan->buffer,
								   scan->dirty, tuple, &all_dead, first);
	LockBuffer(scan->buffer, BUFFER_LOCK_UNLOCK);
	if (first && !entries->xactStartedInRecovery)
		entries->kill_prior_tuple = all_dead;
	return found;
}

/*
 * Read the mark by the hash index, which is faster than the primary key and,
 * like a hint, no more than a guess; false if it leads to no mark for certain.
 */
static bool
read_hashed(MarkScan *scan)
{
	Oid			index = lockfence_mark_hash();
	HeapTupleData tuple;
	IndexScanDesc entries;
	bool		confirmed = false;

	if (!OidIsValid(index))
		return false;
	entries = begin_entries(scan, index, HTEqualStrategyNumber);
	while (!confirmed && next_entry(scan, entries) != NULL)
		confirmed = next_version(scan, entries, &tuple, true) &&
			confirm_guess(scan, &tuple);
	end_entries(entries);
	return confirmed;
}

/*
 * Record the versions to which an entry of the primary key leads, up to one that
 * is the mark.  Where another transaction is changing it, they go on to the
 * version which that one wrote.
 */
static void
note_versions(MarkScan *scan, IndexScanDesc entries)
{
	HeapTupleData tuple;
	bool		first = true;

	while (next_version(scan, entries, &tuple, first))
	{
		if (!version_is_of(scan, &tuple))
			lockfence_report_corruption(scan);
		note_version(scan, &tuple);
		if (!TransactionIdIsValid(scan->changing))
			return;
		first = false;
	}
	if (first)
		lockfence_require_row(scan, &entries->xs_heaptid);
}

/* Read the mark by the primary key, which alone can tell that there is none. */
static void
read_indexed(MarkScan *scan)
{
	IndexScanDesc entries = begin_entries(scan, lockfence_mark_index(),
										  BTEqualStrategyNumber);

	while ((!scan->found || TransactionIdIsValid(scan->changing)) &&
		   next_entry(scan, entries) != NULL)
		note_versions(scan, entries);
	end_entries(entries);
}

/* Read the mark of a resource, and keep the version that was read pinned. */
void
lockfence_mark_begin(MarkScan *scan, const ResourceKey *resource)
{
	memset(scan, 0, sizeof(*scan));
	scan->resource = resource;
	scan->witness = lockfence_cache_witness();
	scan->dirty = palloc(sizeof(SnapshotData));
	InitDirtySnapshot(*scan->dirty);
	scan->rel = lockfence_open_marks();
	if (read_hinted(scan))
		return;
	if (!read_hashed(scan))
		read_indexed(scan);
	if (scan->found && !TransactionIdIsValid(scan->changing))
		lockfence_hint_put(resource, &scan->version.t_self, scan->buffer);
}

/* Look again, by the primary key alone, where no mark was found. */
void
lockfence_mark_look_again(MarkScan *scan)
{
	Assert(!scan->found && !TransactionIdIsValid(scan->changing));
	read_indexed(scan);
}

/*
 * Unpin the page before a wait that may be long.  VACUUM may wait for a backend
 * that has a page pinned, which no deadlock check sees.
 */
void
lockfence_mark_unpin(MarkScan *scan)
{
	if (BufferIsValid(scan->buffer))
		ReleaseBuffer(scan->buffer);
	scan->buffer = InvalidBuffer;
}

/* Read the mark where it was before lockfence_mark_unpin(); false if it is no longer there. */
static bool
read_again(MarkScan *scan)
{
	FenceToken	before = scan->token;

	scan->buffer = ReadBuffer(scan->rel, ItemPointerGetBlockNumber(&scan->version.t_self));
	return read_place(scan, scan->version.t_self) && scan->token == before;
}

/*
 * Is the version that was read still the mark, and no transaction is changing it?
 * Under the resource's lock the answer stays true until the lock is released.
 */
bool
lockfence_mark_unchanged(MarkScan *scan)
{
	bool		visible;

	Assert(scan->found);
	if (!BufferIsValid(scan->buffer))
		return read_again(scan);
	LockBuffer(scan->buffer, BUFFER_LOCK_SHARE);
	visible = HeapTupleSatisfiesVisibility(&scan->version, scan->dirty, scan->buffer);
	LockBuffer(scan->buffer, BUFFER_LOCK_UNLOCK);
	return visible && !TransactionIdIsValid(scan->dirty->xmin) &&
		!TransactionIdIsValid(scan->dirty->xmax);
}

/* The mark's new version. */
static HeapTuple
form_mark(MarkScan *scan, FenceToken token)
{
	NullableDatum columns[MARK_NATTS] = {
		[MARK_ATTNO_TOKEN - 1].value = Int64GetDatum(token),
		[MARK_ATTNO_ADVANCED_AT - 1].value = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()),
		[MARK_ATTNO_RESOURCE - 1].value = CStringGetTextDatum(scan->resource->name)
	};

	return lockfence_form_row(scan->rel, columns, MARK_NATTS);
}

/*
 * Before a mark is updated, make space for its new version beside the old one:
 * old versions are removed from a page that has become full, and not on every
 * visit, since that writes a WAL record each time.  It moves the remaining
 * tuples, so scan->version must not be read afterwards.
 */
static void
make_space(MarkScan *scan, HeapTuple tuple)
{
	Size		space = PageGetHeapFreeSpace(BufferGetPage(scan->buffer));

	if (space < Max(BLCKSZ / 10, tuple->t_len))
		lockfence_prune_page(scan->rel, scan->buffer);
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
	CatalogIndexState indexes;

	lockfence_require_intact_marks(rel);
	indexes = lockfence_open_indexes(rel);
	lockfence_cache_drop(scan->resource);
	/* a version of this very command could not be updated */
	if (scan->of_command)
		CommandCounterIncrement();
	if (scan->found)
	{
		make_space(scan, tuple);
		CatalogTupleUpdateWithInfo(rel, &scan->version.t_self, tuple, indexes);
	}
	else
		CatalogTupleInsertWithInfo(rel, tuple, indexes);
	CatalogCloseIndexes(indexes);
	/* most often the new version is beside the old one */
	if (scan->found && ItemPointerGetBlockNumber(&tuple->t_self) ==
		ItemPointerGetBlockNumber(&scan->version.t_self))
		lockfence_hint_put(scan->resource, &tuple->t_self, scan->buffer);
	heap_freetuple(tuple);
	table_close(rel, NoLock);
}

/* Remove the mark that was read, under the same conditions. */
void
lockfence_mark_remove(MarkScan *scan)
{
	Relation	rel = table_open(RelationGetRelid(scan->rel), RowExclusiveLock);

	lockfence_require_intact_marks(rel);
	lockfence_cache_drop(scan->resource);
	if (scan->of_command)
		CommandCounterIncrement();
	CatalogTupleDelete(rel, &scan->version.t_self);
	table_close(rel, NoLock);
}

/* End the reading; the lock on the table stays until the transaction ends. */
void
lockfence_mark_end(MarkScan *scan)
{
	lockfence_mark_unpin(scan);
	pfree(scan->dirty);
	table_close(scan->rel, NoLock);
}

/* The newest committed mark, without any lock, for advice only; 0: none. */
FenceToken
lockfence_mark_peek(const char *resource)
{
	ResourceKey key;
	MarkScan	scan = {.resource = &key};
	LatestScan	reading;
	ScanKeyData name;
	FenceToken	token = 0;
	HeapTuple	tuple;

	lockfence_set_resource_key(&key, resource);
	scan.rel = lockfence_open_marks();
	ScanKeyInit(&name, MARK_ATTNO_RESOURCE, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(resource));
	lockfence_latest_begin(&reading, scan.rel, lockfence_mark_index(), 1, &name);
	tuple = lockfence_latest_next(&reading);
	if (HeapTupleIsValid(tuple))
		token = version_token(&scan, tuple);
	lockfence_latest_end(&reading);
	table_close(scan.rel, NoLock);
	return token;
}
