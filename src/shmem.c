/*
 * shmem.c
 *		Shared memory: one piece for the statistics and one for the cache.
 *
 * Since 17 it is a named segment that the first backend to ask creates.
 * Before, it is part of the server's own shared memory, and there is none
 * unless the library is preloaded.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "compat.h"
#include "lockfence.h"

static char *memory = NULL;

/* Where a piece begins; the end, for one past the last. */
static Size
piece_offset(int piece)
{
	Size		offset = 0;

	if (piece > LOCKFENCE_SHARED_STATS)
		offset = CACHELINEALIGN(lockfence_stats_size());
	if (piece > LOCKFENCE_SHARED_CACHE)
		offset = add_size(offset, lockfence_cache_size());
	return offset;
}

static Size
wanted_size(void)
{
	return piece_offset(LOCKFENCE_SHARED_CACHE + 1);
}

static void
init_pieces(char *base)
{
	lockfence_stats_init_memory(base + piece_offset(LOCKFENCE_SHARED_STATS));
	lockfence_cache_init_memory(base + piece_offset(LOCKFENCE_SHARED_CACHE));
}

/*
 * When a setting that decides on sizes can be set: at preload, or not at all,
 * since all who use the memory must agree.
 */
GucContext
lockfence_size_context(void)
{
	return process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_INTERNAL;
}

#ifdef LOCKFENCE_HAS_DSM_REGISTRY

static void
init_segment(LOCKFENCE_SEGMENT_INIT_ARGS)
{
	init_pieces((char *) segment);
}

/* A piece of the shared memory, or NULL where there is none. */
void *
lockfence_shared_memory(LockfencePiece piece)
{
	bool		found;

	if (memory == NULL)
		memory = LOCKFENCE_NAMED_SEGMENT("lockfence", wanted_size(), init_segment, &found);
	return memory + piece_offset(piece);
}

void
lockfence_shmem_init(void)
{
	/* the first to need the segment creates it */
}

#else

static shmem_startup_hook_type previous_startup_hook = NULL;

void *
lockfence_shared_memory(LockfencePiece piece)
{
	return memory ? memory + piece_offset(piece) : NULL;
}

#ifdef LOCKFENCE_HAS_SHMEM_REQUEST_HOOK
static shmem_request_hook_type previous_request_hook = NULL;

static void
request_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(wanted_size());
}
#endif

static void
attach_preloaded(void)
{
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	memory = ShmemInitStruct("lockfence", wanted_size(), &found);
	if (!found)
		init_pieces(memory);
	LWLockRelease(AddinShmemInitLock);
}

/* Have the postmaster give us memory, if it is the one that loads us. */
void
lockfence_shmem_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
#ifdef LOCKFENCE_HAS_SHMEM_REQUEST_HOOK
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
#else
	RequestAddinShmemSpace(wanted_size());
#endif
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = attach_preloaded;
}

#endif							/* LOCKFENCE_HAS_DSM_REGISTRY */
