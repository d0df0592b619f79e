/*
 * fastpath.h
 *		Slots by which backends hold resources without the lock manager.
 */
#ifndef LOCKFENCE_FASTPATH_H
#define LOCKFENCE_FASTPATH_H

#include "access/xact.h"
#include "port/atomics.h"
#include "storage/lock.h"

#include "resource.h"
#include "shmem.h"

extern pg_atomic_uint64 *lockfence_fill_slot(const ResourceKey *resource, bool briefly);
extern bool lockfence_grant_slot(pg_atomic_uint64 *slot, const ResourceKey *resource);
extern void lockfence_free_slot(pg_atomic_uint64 *slot);
extern void lockfence_begin_strong_lock(const ResourceKey *resource);
extern void lockfence_end_strong_lock(void);
extern bool lockfence_next_fastpath_holder(const ResourceKey *resource, int *backend,
										   VirtualTransactionId *vxid);
extern const SharedSegment lockfence_fastpath_segment;
extern void lockfence_fastpath_at_xact(XactEvent event);
extern void lockfence_fastpath_at_subxact(SubXactEvent event);

#endif							/* LOCKFENCE_FASTPATH_H */
