/*
 * shmem.h
 *		Shared memory, in pieces.
 */
#ifndef LOCKFENCE_SHMEM_H
#define LOCKFENCE_SHMEM_H

#include "utils/guc.h"

typedef enum LockfencePiece
{
	LOCKFENCE_SHARED_LAYOUT,	/* the first */
	LOCKFENCE_SHARED_STATS,
	LOCKFENCE_SHARED_REFUSALS,
	LOCKFENCE_SHARED_HOLDS,
	LOCKFENCE_SHARED_CACHE,
	LOCKFENCE_SHARED_BREAKER,
	LOCKFENCE_SHARED_ENDED
} LockfencePiece;

extern Size lockfence_layout_size(void);
extern void lockfence_layout_init_memory(void *layout);
extern GucContext lockfence_size_context(void);
extern bool lockfence_settle_size(int *newval, int preset);
extern void *lockfence_shared_memory(LockfencePiece piece);
extern void *lockfence_look_at_memory(LockfencePiece piece);
extern bool lockfence_memory_is_attached(void);
extern void lockfence_shmem_init(void);

#endif							/* LOCKFENCE_SHMEM_H */
