/*
 * shmem.c
 *		Shared memory, in pieces: the counters, the refusals, who holds what and
 *		why they were ended, the cache, and what lockfence_validate borrows.
 *
 * Where the library is preloaded it is part of the server's own shared memory.
 * Where it is not, it is since 17 a named segment that the first backend to ask
 * creates; before, there is none.
 *
 * Sizes follow from settings.  All who use the memory must agree on them, so
 * they can be set at preload only.
 *
 * They must agree on what it means, too.  A package that is installed replaces
 * the library for the sessions that load it from then on, and those that have
 * the old one go on.  A segment of the registry belongs to the library that has
 * made it, which is told by its first bytes, and by its size, that the server
 * itself compares.  Sessions of another library find no way in: they write to
 * no fenced table until a restart does away with the segment.  So there are never two
 * kinds of sessions that do not see each other's holds.  Preloaded, all
 * sessions have the postmaster's library.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "cache.h"
#include "compat.h"
#include "ended.h"
#include "lend.h"
#include "refusals.h"
#include "reslock.h"
#include "shmem.h"
#include "stats.h"

PG_FUNCTION_INFO_V1(lockfence_needs_restart);

static const struct
{
	Size		(*size) (void);
	void		(*init) (void *memory);
}			pieces[] = {
	[LOCKFENCE_SHARED_LAYOUT] = {lockfence_layout_size, lockfence_layout_init_memory},
	[LOCKFENCE_SHARED_STATS] = {lockfence_stats_size, lockfence_stats_init_memory},
	[LOCKFENCE_SHARED_REFUSALS] = {lockfence_refusals_size, lockfence_refusals_init_memory},
	[LOCKFENCE_SHARED_HOLDS] = {lockfence_holds_size, lockfence_holds_init_memory},
	[LOCKFENCE_SHARED_CACHE] = {lockfence_cache_size, lockfence_cache_init_memory},
	[LOCKFENCE_SHARED_BREAKER] = {lockfence_breaker_size, lockfence_breaker_init_memory},
	[LOCKFENCE_SHARED_ENDED] = {lockfence_ended_size, lockfence_ended_init_memory},
};

static bool preloaded = false;
static char *memory = NULL;
static bool is_foreign = false; /* there is memory, of another library */
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

/* Room to tell which library laid the memory out. */
Size
lockfence_layout_size(void)
{
	return NAMEDATALEN;
}

void
lockfence_layout_init_memory(void *layout)
{
	strlcpy((char *) layout, LOCKFENCE_LAYOUT, NAMEDATALEN);
}

/*
 * When a setting that decides on sizes can be set: at preload.  Else it may
 * stand in the configuration as for a later restart, and has no effect.
 */
GucContext
lockfence_size_context(void)
{
	preloaded = process_shared_preload_libraries_in_progress;
	return preloaded ? PGC_POSTMASTER : PGC_SIGHUP;
}

/* Check such a setting: without preloading it stays as it is by default. */
bool
lockfence_settle_size(int *newval, int preset)
{
	if (!preloaded)
		*newval = preset;
	return true;
}

#ifdef LOCKFENCE_HAS_DSM_REGISTRY

static void
init_segment(LOCKFENCE_SEGMENT_INIT_ARGS)
{
	init_pieces((char *) segment);
}

/*
 * The segment, which is created if need be; NULL: there is one of another size.
 * The server tells so by an error without a code of its own.  What it leaves to
 * the end of the transaction is done here: it has a lock of the registry, and
 * this backend has no other, since it decides on a write or runs a function.
 */
static char *
try_segment(void)
{
	MemoryContext caller = CurrentMemoryContext;
	char	   *volatile base = NULL;
	bool		found;

	PG_TRY();
	{
		base = LOCKFENCE_NAMED_SEGMENT("lockfence", wanted_size(), init_segment, &found);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		if (error->message_id == NULL || strcmp(error->message_id, LOCKFENCE_OTHER_SIZE) != 0)
			PG_RE_THROW();
		FlushErrorState();
		FreeErrorData(error);
		LWLockReleaseAll();
	}
	PG_END_TRY();
	return base;
}

/*
 * Have the memory, unless it is another library's.  Any other error goes to the
 * caller, which is better than to go on without: who advances a mark must reach
 * everybody's cache.
 */
static void
attach_segment(void)
{
	char	   *base;

	if (is_foreign)
		return;
	base = try_segment();
	if (base != NULL && strcmp(base, LOCKFENCE_LAYOUT) == 0)
		memory = base;
	else
		is_foreign = true;
}

#else

static void
attach_segment(void)
{
}

#endif							/* LOCKFENCE_HAS_DSM_REGISTRY */

/* Is the memory another library's?  Then say so. */
static bool
report_foreign(int elevel)
{
	if (memory == NULL)
		attach_segment();
	if (is_foreign)
		ereport(elevel,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("lockfence was replaced by another version, and the server has not been restarted since"),
				 errdetail("The shared memory is that of the version before, by which other sessions may still go on. Without it a fence cannot decide, and lets no write pass."),
				 errhint("Restart the server.")));
	return is_foreign;
}

/* A piece of the shared memory, or NULL where there is none. */
void *
lockfence_shared_memory(LockfencePiece piece)
{
	(void) report_foreign(ERROR);
	return memory ? memory + piece_offset(piece) : NULL;
}

/* The same for what decides on nothing: NULL, and a warning, if it is another library's. */
void *
lockfence_look_at_memory(LockfencePiece piece)
{
	static bool has_warned = false;

	if (!has_warned)
		has_warned = report_foreign(WARNING);
	return memory ? memory + piece_offset(piece) : NULL;
}

/* Can pieces be had without attaching to anything, as amid an error? */
bool
lockfence_memory_is_attached(void)
{
	return memory != NULL;
}

/* _needs_restart(): is the memory another library's? */
Datum
lockfence_needs_restart(PG_FUNCTION_ARGS)
{
	if (memory == NULL)
		attach_segment();
	PG_RETURN_BOOL(is_foreign);
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
