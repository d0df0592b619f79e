/*
 * latest.h
 *		Rows as they were committed last.
 */
#ifndef LOCKFENCE_LATEST_H
#define LOCKFENCE_LATEST_H

#include "access/htup.h"
#include "access/skey.h"
#include "nodes/lockoptions.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

typedef struct LatestScan
{
	struct SnapshotData *snapshot;
	struct SysScanDescData *versions;
} LatestScan;

extern void lockfence_latest_begin(LatestScan *scan, Relation rel, Oid index,
								   int nkeys, ScanKey keys);
extern HeapTuple lockfence_latest_next(LatestScan *scan);
extern void lockfence_latest_end(LatestScan *scan);
extern bool lockfence_latest_lock(Relation rel, const ItemPointerData *version,
								  LockTupleMode mode, LockWaitPolicy policy);

#endif							/* LOCKFENCE_LATEST_H */
