/*
 * api.h
 *		The API that the core has for lockfence_validate, a library of its own.
 *
 * That library is loaded by the backends that ask the lock service and by no
 * other, so it can have no shared memory: it uses some of the core's.  The two
 * are built from one tree, but a server that has preloaded the core keeps its
 * old version when a package brings new ones: hence the layout's number.
 */
#ifndef LOCKFENCE_API_H
#define LOCKFENCE_API_H

#include "storage/condition_variable.h"
#include "storage/spin.h"

/* Raise it with any change of what follows. */
#define LOCKFENCE_API_LAYOUT 2

/* Requests that may be in progress at once in the whole server. */
#define LOCKFENCE_BREAKER_SLOTS 32

/*
 * The circuit breaker.  Times are microseconds of the monotonic clock, which all
 * processes share.  A process that takes a slot or the probe says until when at
 * most, so that what a dead process has taken becomes free by itself.
 */
typedef struct LockfenceBreaker
{
	slock_t		mutex;			/* of all that follows but the condition variable */
	int			failures;		/* in a row */
	uint64		opened_at;		/* 0: it is closed */
	uint64		probe_until;	/* 0: no process probes */
	uint64		slots[LOCKFENCE_BREAKER_SLOTS]; /* until when each is taken */
	ConditionVariable freed;	/* a slot, or the breaker has opened */
} LockfenceBreaker;

typedef struct LockfenceApi
{
	int			layout;
	LockfenceBreaker *breaker;	/* NULL: there is no shared memory */
	void		(*count_open) (void);	/* a yes for which the lock service was not asked */
	const char *(*visible) (const char *text);	/* what other roles have named, in messages */
} LockfenceApi;

/* for the core itself */
extern const struct SharedSegment lockfence_breaker_segment;

/* Its name is looked for in the core's library. */
#define LOCKFENCE_API_SYMBOL "lockfence_api"
typedef const LockfenceApi *(*GetLockfenceApi) (void);

#endif							/* LOCKFENCE_API_H */
