/*
 * damage.c
 *		Marks that are not what they should be.
 *
 * A mark that cannot be found looks like a resource without one, whose first
 * token is accepted, whatever it is.  So what is lost or damaged has to be told
 * from what never was, and is an error then.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "lockfence.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Is every mark sure to be found by this index? */
static bool
index_is_whole(Oid index, Oid relid, AttrNumber resource)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;
	bool		whole;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	whole = form->indrelid == relid && form->indisunique && form->indisvalid &&
		form->indisready && form->indislive && form->indnkeyatts == 1 &&
		form->indkey.values[0] == resource &&
		heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
	ReleaseSysCache(tuple);
	return whole;
}

/* An error unless the index is the marks' primary key, or as good. */
void
lockfence_require_mark_index(Oid index, Oid relid, AttrNumber resource)
{
	if (!index_is_whole(index, relid, resource))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s.mark_pkey\" cannot be relied on", LOCKFENCE_SCHEMA),
				 errdetail("It is not valid, or does not have every resource of \"%s.mark\". A fence cannot decide without it, and lets no write pass.",
						   LOCKFENCE_SCHEMA),
				 errhint("Use REINDEX to make it valid, or restore the primary key on the column resource.")));
}

/* The error for a mark that cannot be read. */
void
lockfence_report_damage(const MarkScan *scan)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("the mark of resource \"%s\" is damaged", scan->resource->name),
			 errdetail("The index of table \"%s.mark\" has an entry whose row is lost, or is not that of a mark. The fence cannot decide, and lets no write pass.",
					   LOCKFENCE_SCHEMA),
			 errhint("Stop the holders' writes, and see \"Lost and damaged marks\" in lockfence's documentation of operations before any repair."),
			 errtable(scan->rel)));
}

/* The page's item, or NULL where there is none. */
static ItemId
used_item(Page page, OffsetNumber item)
{
	ItemId		id;

	if (PageIsNew(page) || item < FirstOffsetNumber || item > PageGetMaxOffsetNumber(page))
		return NULL;
	id = PageGetItemId(page, item);
	return ItemIdIsUsed(id) ? id : NULL;
}

/* Is there a row, visible or not, to which an index entry may point? */
static bool
page_has_row(Page page, OffsetNumber item)
{
	ItemId		id = used_item(page, item);

	/* what was updated within the page; it leads to a row, or is itself dead */
	if (id != NULL && ItemIdIsRedirected(id))
	{
		id = used_item(page, ItemIdGetRedirect(id));
		if (id != NULL && !ItemIdIsNormal(id))
			return false;
	}
	return id != NULL &&
		(!ItemIdIsNormal(id) ||
		 ((HeapTupleHeader) PageGetItem(page, id))->t_hoff >= SizeofHeapTupleHeader);
}

static bool
row_is_there(Relation rel, ItemPointer tid)
{
	Buffer		buffer = ReadBuffer(rel, ItemPointerGetBlockNumber(tid));
	bool		there;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	there = page_has_row(BufferGetPage(buffer), ItemPointerGetOffsetNumber(tid));
	UnlockReleaseBuffer(buffer);
	return there;
}

/*
 * An error unless there is a row for an entry of the index that showed none.
 * The caller's scan stands on the entry and so has its page pinned, and VACUUM,
 * which removes entries before rows, cannot have come in between.
 */
void
lockfence_require_row(const MarkScan *scan, ItemPointer tid)
{
	if (!row_is_there(scan->rel, tid))
		lockfence_report_damage(scan);
}
