/*
 * marklock.h
 *		Locks on a mark's tuple.
 */
#ifndef LOCKFENCE_MARKLOCK_H
#define LOCKFENCE_MARKLOCK_H

#include "nodes/pg_list.h"

#include "mark.h"

extern bool lockfence_mark_lock_tuple(MarkScan *scan);
extern List *lockfence_mark_lockers(MarkScan *scan);

#endif							/* LOCKFENCE_MARKLOCK_H */
