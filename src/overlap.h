/*
 * overlap.h
 *		How late stale tokens come.
 */
#ifndef LOCKFENCE_OVERLAP_H
#define LOCKFENCE_OVERLAP_H

#include "refuse.h"

extern void lockfence_measure_overlap(const FencedWrite *write, const Refusal *refusal);

#endif							/* LOCKFENCE_OVERLAP_H */
