/*
 * shmem.c
 *		Shared memory, in segments: one per file that keeps something there.
 *
 * The caller of lockfence_shmem_init() says which segments there are, so that this
 * file knows none of them.
 *
 * Where the library is preloaded it is part of the server's own shared memory.
 * Where it is not, it is since 17 a named segment that the first backend to ask
 * creates; before, there is none.
 *
 * Sizes follow from settings.  All who use the memory must agree on them, so
 * they can be set at preload only.
 *
 * They must agree on what it means, too.  A package that is installed replaces
 * the library for the sessions that load it from then on, and sessions that have
 * the old library keep it.  A segment of the registry belongs to the library that
 * made it, which is known by its first bytes, and by its size, which the server
 * itself compares.  Sessions of another library cannot use it: they cannot write
 * to fenced tables until a restart removes the segment.  So there are never two
 * kinds of sessions that do not see each other's holds.  If the library is
 * preloaded, all sessions have the postmaster's.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "compat.h"
#include "shmem.h"

/* Space to tell which library laid the memory out. */
#define LAYOUT_SIZE	NAMEDATALEN

PG_FUNCTION_INFO_V1(lockfence_needs_restart);

static const SharedSegment *const *segments = NULL;
static int	nsegments = 0;

static bool preloaded = false;
static char *memory = NULL;
static bool is_foreign = false; /* there is memory, of another library */
static shmem_startup_hook_type previous_startup_hook = NULL;

/* Where a segment begins; NULL: the end of the last. */
static Size
segment_offset(const SharedSegment *segment)
{
	Size		offset = CACHELINEALIGN(LAYOUT_SIZE);
	int			i;

	for (i = 0; i < nsegments && segments[i] != segment; i++)
		offset = add_size(offset, CACHELINEALIGN(segments[i]->size()));
	Assert(segment == NULL || i < nsegments);
	return offset;
}

static Size
wanted_size(void)
{
	return segment_offset(NULL);
}

/* Make new memory ready for use: tell which library laid it out, and have each file do the rest. */
static void
init_segments(char *base)
{
	strlcpy(base, LOCKFENCE_LAYOUT, LAYOUT_SIZE);
	for (int i = 0; i < nsegments; i++)
		segments[i]->init(base + segment_offset(segments[i]));
}

/*
 * When a setting that decides on sizes can be set: at preload.  Otherwise it may
 * stand in the configuration for a later restart, and has no effect.
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
init_named_segment(LOCKFENCE_SEGMENT_INIT_ARGS)
{
	init_segments((char *) segment);
}

/*
 * The named segment, which is created if need be; NULL: there is one of another size.
 * The server reports that by an error without a code of its own.  What it leaves
 * to the end of the transaction is done here: it has a lock of the registry, and
 * this backend has no other, since it decides on a write or runs a function.
 */
static char *
try_named_segment(void)
{
	MemoryContext caller = CurrentMemoryContext;
	char	   *volatile base = NULL;
	bool		found;

	PG_TRY();
	{
		base = LOCKFENCE_NAMED_SEGMENT("lockfence", wanted_size(), init_named_segment, &found);
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
 * caller, which is better than to go on without: a session that advances a mark
 * must reach the cache of all others.
 */
static void
attach_named_segment(void)
{
	char	   *base;

	if (is_foreign)
		return;
	base = try_named_segment();
	if (base != NULL && strcmp(base, LOCKFENCE_LAYOUT) == 0)
		memory = base;
	else
		is_foreign = true;
}

#else

static void
attach_named_segment(void)
{
}

#endif							/* LOCKFENCE_HAS_DSM_REGISTRY */

/* Is the memory another library's?  Then say so. */
static bool
report_foreign(int elevel)
{
	if (memory == NULL)
		attach_named_segment();
	if (is_foreign)
		ereport(elevel,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("lockfence was replaced by another version, and the server has not been restarted since"),
				 errdetail("The shared memory belongs to the previous version, which other sessions may still use. Without shared memory a fence cannot decide, and rejects all writes."),
				 errhint("Restart the server.")));
	return is_foreign;
}

/* An error if the memory is another library's; none if there is no memory. */
void
lockfence_require_own_memory(void)
{
	(void) report_foreign(ERROR);
}

/* A segment of the shared memory, or NULL where there is none. */
void *
lockfence_shared_memory(const SharedSegment *segment)
{
	lockfence_require_own_memory();
	return memory ? memory + segment_offset(segment) : NULL;
}

/* The same for what decides on nothing: NULL, and a warning, if it is another library's. */
void *
lockfence_look_at_memory(const SharedSegment *segment)
{
	static bool has_warned = false;

	if (!has_warned)
		has_warned = report_foreign(WARNING);
	return memory ? memory + segment_offset(segment) : NULL;
}

/* Can segments be had without attaching to anything, as amid an error? */
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
		attach_named_segment();
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
		init_segments(memory);
	LWLockRelease(AddinShmemInitLock);
}

/* Have the postmaster give us memory for the segments, if it is the one that loads us. */
void
lockfence_shmem_init(const SharedSegment *const *table, int n)
{
	segments = table;
	nsegments = n;
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
