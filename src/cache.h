/*
 * cache.h
 *		Committed marks, in shared memory.
 */
#ifndef LOCKFENCE_CACHE_H
#define LOCKFENCE_CACHE_H

#include "lockfence.h"
#include "resource.h"
#include "shmem.h"

typedef struct CacheLook
{
	struct CacheSet *set;
	uint32		version;		/* of the set */
	uint64		changes;		/* of what the mark is right by (witness.c) */
} CacheLook;

extern uint64 lockfence_cache_witness(void);
extern FenceToken lockfence_cache_find(const ResourceKey *resource, CacheLook *look);
extern bool lockfence_cache_unchanged(const CacheLook *look);
extern void lockfence_cache_put(const ResourceKey *resource, FenceToken token,
								uint64 witness);
extern void lockfence_cache_drop(const ResourceKey *resource);
extern void lockfence_cache_init(void);
extern const SharedSegment lockfence_cache_segment;

#endif							/* LOCKFENCE_CACHE_H */
