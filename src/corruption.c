/*
 * corruption.c
 *		Marks that are not what they should be.
 *
 * A mark that cannot be found looks like a resource without one, whose first
 * token is accepted, whatever it is.  So what is lost or corrupted has to be told
 * from what never was, and is an error then.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "corruption.h"
#include "lockfence.h"
#include "mark.h"
#include "visible.h"

/* The error for a mark that cannot be read. */
void
lockfence_report_corruption(const MarkScan *scan)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("the mark of resource \"%s\" is corrupted", lockfence_visible(scan->resource->name)),
			 errdetail("The index of table \"%s.mark\" has an entry whose row is lost, or is not a mark. The fence cannot decide, and rejects all writes.",
					   LOCKFENCE_SCHEMA),
			 errhint("Stop the holders' writes, and see \"Lost and corrupted marks\" in lockfence's documentation (Operations) before any repair."),
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

/*
 * An error unless there is a row for an entry of the index that showed none.
 * The caller has the row's page pinned; its scan stands on the entry and so has
 * that one's page pinned too, and VACUUM, which removes entries before rows,
 * cannot have come in between.
 */
void
lockfence_require_row(const MarkScan *scan, ItemPointer tid)
{
	bool		there;

	LockBuffer(scan->buffer, BUFFER_LOCK_SHARE);
	there = page_has_row(BufferGetPage(scan->buffer), ItemPointerGetOffsetNumber(tid));
	LockBuffer(scan->buffer, BUFFER_LOCK_UNLOCK);
	if (!there)
		lockfence_report_corruption(scan);
}
