/*
 * marklock.h
 *		Locks on a mark's tuple.
 */
#ifndef LOCKFENCE_MARKLOCK_H
#define LOCKFENCE_MARKLOCK_H

#include "access/tableam.h"
#include "nodes/pg_list.h"

#include "mark.h"

extern TM_Result lockfence_mark_lock_tuple(MarkScan *scan);
extern List *lockfence_mark_lockers(MarkScan *scan);

#endif							/* LOCKFENCE_MARKLOCK_H */
