/*
 * fencecache.h
 *		The fence of a trigger, and of a table.
 */
#ifndef LOCKFENCE_FENCECACHE_H
#define LOCKFENCE_FENCECACHE_H

#include "fmgr.h"
#include "utils/rel.h"

#include "check.h"
#include "fencedef.h"

extern const Fence *lockfence_trigger_fence(FunctionCallInfo fcinfo);
extern const Fence *lockfence_written_fence(Relation rel);
extern const Fence *lockfence_relation_fence(Relation rel);
extern FenceCheck lockfence_fence_check(const Fence *fence, Relation rel,
										const char *resource);
extern void lockfence_fencecache_at_relcache(Oid relid);

#endif							/* LOCKFENCE_FENCECACHE_H */
