/*
 * ended.h
 *		Why a transaction was ended.
 */
#ifndef LOCKFENCE_ENDED_H
#define LOCKFENCE_ENDED_H

#include "check.h"
#include "shmem.h"

extern void lockfence_note_end(int pid, const FenceCheck *check);
extern void lockfence_ended_init(void);
extern const SharedSegment lockfence_ended_segment;

#endif							/* LOCKFENCE_ENDED_H */
