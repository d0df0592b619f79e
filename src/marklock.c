/*
 * marklock.c
 *		Locks on a mark's tuple, by which a transaction holds a resource where it has
 *		as many locks as the setting lets it take.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/rel.h"

#include "mark.h"
#include "marklock.h"

/*
 * Lock the version that was read FOR SHARE.  TM_WouldBlock: another transaction has
 * locked it so that no other may, which no transaction does but that of a superuser
 * who locks marks by hand.  To wait for that one here would be to keep the page pinned.
 */
TM_Result
lockfence_mark_lock_tuple(MarkScan *scan)
{
	HeapTupleData tuple = {.t_self = scan->version.t_self};
	TM_FailureData failure;
	TM_Result	result;
	Buffer		buffer;

	/* an uncommitted version of our own is lock enough */
	if (scan->own)
		return TM_Ok;

	PreventCommandDuringRecovery("a lock on a fence's mark");

	/* tells lockfence.prepared_holds that the transaction locked a mark */
	LockRelationOid(RelationGetRelid(scan->rel), RowShareLock);
	result = heap_lock_tuple(scan->rel, &tuple, GetCurrentCommandId(true), LockTupleShare,
							 LockWaitSkip, false, &buffer, &failure);
	ReleaseBuffer(buffer);
	return result;
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
 * list of their ids.  Under the exclusive lock no new holders can come.
 */
List *
lockfence_mark_lockers(MarkScan *scan)
{
	HeapTupleHeader header = scan->version.t_data;
	uint16		infomask;
	TransactionId xmax;
	MultiXactMember *members;
	List	   *lockers = NIL;
	int			nmembers;

	/* an updater among them has aborted, or the version were not the mark */
	if (header->t_infomask & HEAP_XMAX_INVALID)
		return NIL;
	/* a superuser may lock the mark at any time, and the two mean something only together */
	LockBuffer(scan->buffer, BUFFER_LOCK_SHARE);
	infomask = header->t_infomask;
	xmax = HeapTupleHeaderGetRawXmax(header);
	LockBuffer(scan->buffer, BUFFER_LOCK_UNLOCK);

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
