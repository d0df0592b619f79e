/*
 * lockwait.h
 *		The exclusive lock, and waiting for those in the way of an advance.
 */
#ifndef LOCKFENCE_LOCKWAIT_H
#define LOCKFENCE_LOCKWAIT_H

#include "check.h"
#include "mark.h"
#include "resource.h"

extern void lockfence_lock_exclusive(const ResourceKey *resource);
extern bool lockfence_claim_exclusive(const FenceCheck *check, MarkScan *scan);
extern bool lockfence_try_lock_exclusive(const ResourceKey *resource);
extern void lockfence_unlock_exclusive(const ResourceKey *resource);
extern void lockfence_settle_lockers(List *lockers, const FenceCheck *check);
extern void lockfence_wait_for_change(TransactionId xid, FenceToken pending,
									  const FenceCheck *check);
extern void lockfence_wait_for_end(TransactionId xid, const ResourceKey *resource);

#endif							/* LOCKFENCE_LOCKWAIT_H */
