/*
 * refusals.h
 *		The rings of the last refusals, and the log.
 */
#ifndef LOCKFENCE_REFUSALS_H
#define LOCKFENCE_REFUSALS_H

#include "recorded.h"
#include "refuse.h"
#include "shmem.h"

extern void lockfence_refusals_init(void);
extern const SharedSegment lockfence_refusals_segment;
extern void lockfence_record_refusal(const FencedWrite *write, const Refusal *refusal);
extern KeptTotals lockfence_refusal_totals(RefusalClass class);
extern void lockfence_forget_refusals(void);

#endif							/* LOCKFENCE_REFUSALS_H */
