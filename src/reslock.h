/*
 * reslock.h
 *		Who holds a resource.
 */
#ifndef LOCKFENCE_RESLOCK_H
#define LOCKFENCE_RESLOCK_H

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "storage/lock.h"

#include "resource.h"
#include "shmem.h"

extern LOCKTAG lockfence_resource_tag(const ResourceKey *resource);
extern void lockfence_lock_shared(const ResourceKey *resource, bool briefly);
extern void lockfence_confirm_shared(void);
extern void lockfence_unlock_shared(const ResourceKey *resource);
extern void lockfence_claim(const ResourceKey *resource);
extern void lockfence_unclaim(void);
extern bool lockfence_is_held_lightly(const ResourceKey *resource);
extern void lockfence_wait_for_light_holders(const ResourceKey *resource);
extern void lockfence_wait_for_all_holders(void);
extern List *lockfence_holder_pids(const ResourceKey *resource);
extern const SharedSegment lockfence_holds_segment;
extern void lockfence_reslock_at_xact(XactEvent event);
extern void lockfence_reslock_at_subxact(SubXactEvent event);

#endif							/* LOCKFENCE_RESLOCK_H */
