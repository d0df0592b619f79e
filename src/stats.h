/*
 * stats.h
 *		Counters, in shared memory; in the order of the columns of _stats().
 */
#ifndef LOCKFENCE_STATS_H
#define LOCKFENCE_STATS_H

#include "port/atomics.h"
#include "utils/rel.h"

#include "shmem.h"

typedef enum LockfenceCounter
{
	LOCKFENCE_ACCEPTED,			/* writes let pass by their token */
	LOCKFENCE_ADVANCED,			/* ... that raised a mark */
	LOCKFENCE_STALE,			/* LF001 */
	LOCKFENCE_MISSING,			/* LF002 */
	LOCKFENCE_INVALID,			/* LF003 */
	LOCKFENCE_UNKNOWN_EPOCH,	/* LF004 */
	LOCKFENCE_CONFLICTING,		/* LF006 */
	LOCKFENCE_UNVALIDATED,		/* LF007 */
	LOCKFENCE_UNFENCEABLE,		/* LF009 */
	LOCKFENCE_UNPROTECTED,		/* no token, and the fence allows it */
	LOCKFENCE_ADVISORY,			/* refusals that were only reported */
	LOCKFENCE_ADVISORY_STALE,	/* ... of stale tokens */
	LOCKFENCE_BYPASSED,			/* under lockfence.bypass */
	LOCKFENCE_PREEMPTED,		/* holders ended for an advance */
	LOCKFENCE_VALIDATOR_CALLS,
	LOCKFENCE_VALIDATOR_FAILURES,
	LOCKFENCE_NCOUNTERS_1_0,	/* those of _stats() in 1.0 */
	LOCKFENCE_SEALED = LOCKFENCE_NCOUNTERS_1_0, /* LF005 */
	LOCKFENCE_UNAVAILABLE,		/* LF008 */
	LOCKFENCE_VALIDATOR_OPEN,	/* a yes, for want of somebody to ask */
	LOCKFENCE_NCOUNTERS
} LockfenceCounter;

/* How many refusals of a table were logged of late. */
typedef struct LogWindow
{
	pg_atomic_uint64 start;		/* a timestamp */
	pg_atomic_uint64 logged;	/* since then, or held back */
	pg_atomic_uint64 suppressed;	/* since the last line */
} LogWindow;

extern void lockfence_stats_init(void);
extern const SharedSegment lockfence_stats_segment;
extern bool lockfence_tracks(void);
extern void lockfence_count(Relation rel, LockfenceCounter counter);
extern LogWindow *lockfence_log_window(Relation rel);

#endif							/* LOCKFENCE_STATS_H */
