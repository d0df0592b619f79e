/*
 * streak.h
 *		Rows in a row.
 */
#ifndef LOCKFENCE_STREAK_H
#define LOCKFENCE_STREAK_H

#include "fencedef.h"

extern bool lockfence_streak_goes_on(const Fence *fence, Datum value,
									 FenceToken shown, FenceToken *accepted);
extern void lockfence_streak_begin(const Fence *fence, Datum value,
								   FenceToken shown, FenceToken accepted);

#endif							/* LOCKFENCE_STREAK_H */
