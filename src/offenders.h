/*
 * offenders.h
 *		Refusals counted by the session's role, application and address.
 */
#ifndef LOCKFENCE_OFFENDERS_H
#define LOCKFENCE_OFFENDERS_H

#include "recorded.h"
#include "shmem.h"

extern void lockfence_offenders_init(void);
extern const SharedSegment lockfence_offenders_segment;
extern void lockfence_count_offender(RefusalClass class, const RecordedRefusal *refusal);
extern KeptTotals lockfence_offender_totals(RefusalClass class);
extern void lockfence_forget_offenders(void);

#endif							/* LOCKFENCE_OFFENDERS_H */
