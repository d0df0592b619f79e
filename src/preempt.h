/*
 * preempt.h
 *		Ending stale holders.
 */
#ifndef LOCKFENCE_PREEMPT_H
#define LOCKFENCE_PREEMPT_H

#include "nodes/pg_list.h"

#include "check.h"

extern bool lockfence_preempt_holders(List *pids, bool again, const FenceCheck *check);
extern bool lockfence_break_deadlocks(List *pids, const FenceCheck *check);
extern bool lockfence_waits_for_me(int pid);

#endif							/* LOCKFENCE_PREEMPT_H */
