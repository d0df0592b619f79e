/*
 * lockwait.h
 *		Holding a mark, and waiting for those in the way of its change.
 */
#ifndef LOCKFENCE_LOCKWAIT_H
#define LOCKFENCE_LOCKWAIT_H

#include "check.h"
#include "mark.h"
#include "reslock.h"
#include "resource.h"

extern bool lockfence_hold_mark(MarkScan *scan, const FenceCheck *check);
extern bool lockfence_hold_by_tuple(MarkScan *scan, const FenceCheck *check);
extern void lockfence_await_hold(ResourceHold *hold, const FenceCheck *check);
extern void lockfence_lock_exclusive(const ResourceKey *resource);
extern bool lockfence_lock_for_advance(const FenceCheck *check, MarkScan *scan);
extern bool lockfence_wait_for_lockers(MarkScan *scan);
extern void lockfence_settle_stale(TransactionId xid, const FenceCheck *check);
extern void lockfence_settle_lockers(List *lockers, const FenceCheck *check);
extern bool lockfence_is_stale_change(FenceToken pending, FenceToken token);
extern void lockfence_wait_for_change(TransactionId xid, FenceToken pending,
									  const FenceCheck *check);
extern void lockfence_wait_for_end(TransactionId xid, const ResourceKey *resource);

#endif							/* LOCKFENCE_LOCKWAIT_H */
