/*
 * shmem.h
 *		Shared memory, in segments.
 */
#ifndef LOCKFENCE_SHMEM_H
#define LOCKFENCE_SHMEM_H

#include "utils/guc.h"

/* What one file keeps in shared memory. */
typedef struct SharedSegment
{
	Size		(*size) (void); /* in bytes, as the settings have it */
	void		(*init) (void *memory); /* makes new memory ready for use */
} SharedSegment;

extern GucContext lockfence_size_context(void);
extern bool lockfence_settle_size(int *newval, int preset);
extern void lockfence_require_own_memory(void);
extern void *lockfence_shared_memory(const SharedSegment *segment);
extern void *lockfence_look_at_memory(const SharedSegment *segment);
extern bool lockfence_memory_is_attached(void);
extern void lockfence_shmem_init(const SharedSegment *const *table, int n);

#endif							/* LOCKFENCE_SHMEM_H */
