/*
 * state.h
 *		What holds for every resource at once.
 */
#ifndef LOCKFENCE_STATE_H
#define LOCKFENCE_STATE_H

#include "access/xlogdefs.h"
#include "storage/itemptr.h"

#include "lockfence.h"

typedef struct RecordedTimeline
{
	bool		found;
	bool		other_system;	/* by another cluster */
	bool		uncommitted;	/* by this transaction */
	TimeLineID	timeline;
	ItemPointerData tid;
} RecordedTimeline;

extern int	lockfence_state_epoch(void);
extern FenceToken lockfence_state_minimum(void);
extern FenceToken lockfence_state_floor(void);
extern RecordedTimeline lockfence_state_timeline(void);
extern bool lockfence_state_try_timeline(const RecordedTimeline *recorded,
										 TimeLineID timeline);
extern RecordedTimeline lockfence_state_set_timeline(TimeLineID timeline);
extern void lockfence_state_forget(void);
extern bool lockfence_is_state(Oid relid);
extern void lockfence_state_at_relcache(Oid relid);

#endif							/* LOCKFENCE_STATE_H */
