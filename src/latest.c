/*
 * latest.c
 *		Rows of the extension's tables as they were committed last.
 *
 * The fence reads what is so now, whatever snapshot the transaction has, and is
 * no part of what that reads: a SERIALIZABLE transaction must not fail since
 * somebody has advanced a mark, or set an epoch, after it has asked.  A scan by
 * an MVCC snapshot would note in behalf of the transaction what it reads (SIREAD
 * locks).  So the scan shows every version, which notes nothing, and each is
 * then judged by the latest snapshot.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "utils/snapmgr.h"

#include "latest.h"

/* Begin to read an open table, by an index or (InvalidOid) as a whole. */
void
lockfence_latest_begin(LatestScan *scan, Relation rel, Oid index, int nkeys, ScanKey keys)
{
	scan->snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan->versions = systable_beginscan(rel, index, OidIsValid(index), SnapshotAny, nkeys, keys);
}

/* The next row, or NULL. */
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
