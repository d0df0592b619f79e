/*
 * shmem.c
 *		Shared memory, in pieces: the counters, the refusals, who holds what, the
 *		cache, and what lockfence_validate borrows.
 *
 * Where the library is preloaded it is part of the server's own shared memory.
 * Where it is not, it is since 17 a named segment that the first backend to ask
 * creates; before, there is none.
 *
 * Sizes follow from settings.  All who use the memory must agree on them, so
 * they can be set at preload only.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "compat.h"
#include "lockfence.h"

static const struct
{
	Size		(*size) (void);
	void		(*init) (void *memory);
}			pieces[] = {
	[LOCKFENCE_SHARED_VERSION] = {lockfence_version_size, lockfence_version_init_memory},
	[LOCKFENCE_SHARED_STATS] = {lockfence_stats_size, lockfence_stats_init_memory},
	[LOCKFENCE_SHARED_REFUSALS] = {lockfence_refusals_size, lockfence_refusals_init_memory},
	[LOCKFENCE_SHARED_HOLDS] = {lockfence_holds_size, lockfence_holds_init_memory},
	[LOCKFENCE_SHARED_CACHE] = {lockfence_cache_size, lockfence_cache_init_memory},
	[LOCKFENCE_SHARED_BREAKER] = {lockfence_breaker_size, lockfence_breaker_init_memory},
};

static char *memory = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

/* Where a piece begins; the end, for one past the last. */
static Size
piece_offset(int piece)
{
	Size		offset = 0;

	for (int i = 0; i < piece; i++)
		offset = add_size(offset, CACHELINEALIGN(pieces[i].size()));
	return offset;
}

static Size
wanted_size(void)
{
	return piece_offset(lengthof(pieces));
}

static void
init_pieces(char *base)
{
	for (int i = 0; i < lengthof(pieces); i++)
		pieces[i].init(base + piece_offset(i));
}

/* Room to tell which version of the library laid the memory out. */
Size
lockfence_version_size(void)
{
	return NAMEDATALEN;
}

void
lockfence_version_init_memory(void *version)
{
	strlcpy((char *) version, LOCKFENCE_VERSION, NAMEDATALEN);
}

/* When a setting that decides on sizes can be set: at preload, or not at all. */
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

/*
 * The segment, which is created if need be.  An error is better than to go on
 * without: who advances a mark must reach everybody's cache.
 */
static char *
attach_segment(void)
{
	bool		found;
	char	   *base = LOCKFENCE_NAMED_SEGMENT("lockfence", wanted_size(), init_segment, &found);

	if (strcmp(base, LOCKFENCE_VERSION) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the server's shared memory is that of lockfence %s, and the library is %s",
						base, LOCKFENCE_VERSION),
				 errhint("Restart the server.")));
	return base;
}

#else

static char *
attach_segment(void)
{
	return NULL;
}

#endif							/* LOCKFENCE_HAS_DSM_REGISTRY */

/* A piece of the shared memory, or NULL where there is none. */
void *
lockfence_shared_memory(LockfencePiece piece)
{
	if (memory == NULL)
		memory = attach_segment();
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
