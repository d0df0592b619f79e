/*
 * stats.h
 *		Counters, in shared memory.
 */
#ifndef LOCKFENCE_STATS_H
#define LOCKFENCE_STATS_H

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "utils/rel.h"

#include "recorded.h"
#include "shmem.h"

typedef enum LockfenceCounter
{
#define COUNTER(counter, column) LOCKFENCE_##counter,
#include "counters.def"
#define BUCKET(counter, column, most) LOCKFENCE_##counter,
#define MEASURE(counter, column) LOCKFENCE_##counter,
#include "overlap.def"
	LOCKFENCE_NCOUNTERS
} LockfenceCounter;

/* How many refusals of a table were logged of late. */
typedef struct LogWindow
{
	pg_atomic_uint64 start;		/* a timestamp */
	pg_atomic_uint64 logged;	/* since then, or held back */
	pg_atomic_uint64 suppressed;	/* since the last line */
} LogWindow;

/* For how many tables there are counters, how many have some, and how many gave way. */
typedef struct StatsTotals
{
	bool		available;		/* is anything kept? */
	int64		capacity;
	int64		used;
	int64		evicted;
	TimestampTz reset_at;
} StatsTotals;

extern void lockfence_stats_init(void);
extern const SharedSegment lockfence_stats_segment;
extern bool lockfence_tracks(void);
extern void lockfence_count(Relation rel, LockfenceCounter counter);
extern void lockfence_count_more(Relation rel, LockfenceCounter counter, uint64 more);
extern void lockfence_count_highest(Relation rel, LockfenceCounter counter, uint64 value);
extern StatsTotals lockfence_stats_totals(void);
extern void lockfence_forget_stats(void);
extern LogWindow *lockfence_log_window(Relation rel, RefusalClass class);

#endif							/* LOCKFENCE_STATS_H */
