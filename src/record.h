/*
 * record.h
 *		What was fenced, on record.
 */
#ifndef LOCKFENCE_RECORD_H
#define LOCKFENCE_RECORD_H

#include "fencedef.h"

extern bool lockfence_is_record(Oid relid);
extern bool lockfence_lacks_record(const Fence *fence, Relation rel);
extern bool lockfence_try_record(const Fence *fence, const FencedWrite *write);

/* Can the fence, if there is one, decide on the write, its table being on record?  Refuses it if not. */
static inline bool
lockfence_pass_record(const Fence *fence, const FencedWrite *write)
{
	return fence == NULL || likely(!fence->unrecorded) || lockfence_try_record(fence, write);
}

#endif							/* LOCKFENCE_RECORD_H */
