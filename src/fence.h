/*
 * fence.h
 *		The decision.
 */
#ifndef LOCKFENCE_FENCE_H
#define LOCKFENCE_FENCE_H

#include "check.h"
#include "fencedef.h"
#include "mark.h"
#include "presented.h"
#include "takeovers.h"

extern bool lockfence_admit_tokens(FenceCheck *check, const PresentedTokens *tokens);
extern FenceToken lockfence_admit(FenceCheck *check, const PresentedTokens *tokens,
								  FenceToken *previous);
extern void lockfence_pass_unprotected(const Fence *fence, const FencedWrite *write);
extern bool lockfence_try_advance(MarkScan *scan, const FenceCheck *check);
extern bool lockfence_raise_mark(const char *resource, FenceToken token, AdvanceWay way,
								 FenceToken *before);

#endif							/* LOCKFENCE_FENCE_H */
