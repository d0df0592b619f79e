/*
 * advisory.h
 *		Fences that report instead of refusing.
 */
#ifndef LOCKFENCE_ADVISORY_H
#define LOCKFENCE_ADVISORY_H

#include "check.h"
#include "fencedef.h"
#include "settings.h"

/* Asks the fence about a write, and notes in its argument what came of it. */
typedef void (*Decision) (void *arg);

extern bool lockfence_decide_advisorily(const FencedWrite *write, const Fence *fence,
										Decision decide, void *arg);
extern bool lockfence_is_of_session(const ErrorData *error);

/* Does the fence only report?  NULL: present(), which is of no fence. */
static inline bool
lockfence_is_advisory(const Fence *fence)
{
	return unlikely(lockfence_enforcement == LOCKFENCE_ENFORCE_NONE) ||
		(fence != NULL && fence->advisory);
}

/* Let the fence of a table decide; false: it is advisory, and could not. */
static inline bool
lockfence_decide(Relation rel, const Fence *fence, Decision decide, void *arg)
{
	FencedWrite write = {.rel = rel,.advisory = true};

	if (unlikely(lockfence_is_advisory(fence)))
	{
		write.resource = fence->resource;
		write.named_by = fence;
		return lockfence_decide_advisorily(&write, fence, decide, arg);
	}
	decide(arg);
	return true;
}

#endif							/* LOCKFENCE_ADVISORY_H */
