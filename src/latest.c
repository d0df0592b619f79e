/*
 * latest.c
 *		Rows of the extension's tables in their latest committed version.
 *
 * The fence reads the present state, whatever snapshot the transaction has, and the
 * transaction must not depend on that read: a SERIALIZABLE transaction must not
 * fail because another one has advanced a mark, or set an epoch, after the read.  A
 * scan by an MVCC snapshot would take SIREAD locks for the transaction.  So the scan
 * returns every version, which takes none, and each version is then judged by the
 * latest snapshot.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/tuptable.h"
#include "utils/snapmgr.h"

#include "latest.h"

/* Begin to read an open table, by an index or (InvalidOid) sequentially. */
void
lockfence_latest_begin(LatestScan *scan, Relation rel, Oid index, int nkeys, ScanKey keys)
{
	scan->snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan->versions = systable_beginscan(rel, index, OidIsValid(index), SnapshotAny, nkeys, keys);
}

/* The next visible row, or NULL. */
HeapTuple
lockfence_latest_next(LatestScan *scan)
{
	HeapTuple	tuple;

	do
		tuple = systable_getnext(scan->versions);
	while (HeapTupleIsValid(tuple) &&
		   !table_tuple_satisfies_snapshot(scan->versions->heap_rel, scan->versions->slot,
										   scan->snapshot));
	return tuple;
}

void
lockfence_latest_end(LatestScan *scan)
{
	systable_endscan(scan->versions);
	UnregisterSnapshot(scan->snapshot);
}

/* Lock the version that was read; returns false if it is no longer the last one, or the policy is not to wait. */
bool
lockfence_latest_lock(Relation rel, const ItemPointerData *version,
					  LockTupleMode mode, LockWaitPolicy policy)
{
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ItemPointerData tid = *version;
	TM_FailureData failure;
	TM_Result	result;

	result = table_tuple_lock(rel, &tid, snapshot, slot, GetCurrentCommandId(true),
							  mode, policy, 0, &failure);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(slot);
	return result == TM_Ok;
}
