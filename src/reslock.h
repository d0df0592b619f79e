/*
 * reslock.h
 *		The lock on a resource.
 */
#ifndef LOCKFENCE_RESLOCK_H
#define LOCKFENCE_RESLOCK_H

#include "nodes/pg_list.h"
#include "port/atomics.h"
#include "storage/lock.h"

#include "resource.h"

/* A hold that is being acquired: granted or released by whom it was given. */
typedef struct ResourceHold
{
	const ResourceKey *resource;
	pg_atomic_uint64 *slot;		/* NULL: by the lock manager */
} ResourceHold;

extern LOCKTAG lockfence_resource_tag(const ResourceKey *resource);
extern bool lockfence_try_hold(ResourceHold *hold, const ResourceKey *resource,
							   bool briefly);
extern void lockfence_wait_for_hold(ResourceHold *hold);
extern bool lockfence_grant_hold(const ResourceHold *hold);
extern void lockfence_release_hold(const ResourceHold *hold);
extern bool lockfence_try_exclusive(const ResourceKey *resource);
extern void lockfence_wait_for_exclusive(const ResourceKey *resource);
extern void lockfence_release_exclusive(const ResourceKey *resource);
extern void lockfence_wait_for_all_holders(void);
extern List *lockfence_holder_pids(const ResourceKey *resource);

#endif							/* LOCKFENCE_RESLOCK_H */
