/*
 * refusals.h
 *		The ring of the last refusals, and the log.
 */
#ifndef LOCKFENCE_REFUSALS_H
#define LOCKFENCE_REFUSALS_H

#include "refuse.h"
#include "shmem.h"

typedef struct RefusalTotals
{
	int64		capacity;		/* how many are kept */
	int64		recorded;
	int64		overwritten;
} RefusalTotals;

extern void lockfence_refusals_init(void);
extern const SharedSegment lockfence_refusals_segment;
extern void lockfence_record_refusal(const FencedWrite *write, const Refusal *refusal);
extern RefusalTotals lockfence_refusal_totals(void);
extern void lockfence_forget_refusals(void);

#endif							/* LOCKFENCE_REFUSALS_H */
