/*
 * rowrun.h
 *		Runs of rows that one answer serves.
 */
#ifndef LOCKFENCE_ROWRUN_H
#define LOCKFENCE_ROWRUN_H

#include "fencedef.h"

extern bool lockfence_run_goes_on(const Fence *fence, Datum value,
								  FenceToken set, FenceToken *accepted);
extern void lockfence_run_begin(const Fence *fence, Datum value,
								FenceToken set, FenceToken accepted);

#endif							/* LOCKFENCE_ROWRUN_H */
