/*
 * refusals.h
 *		The ring of the last refusals, and the log.
 */
#ifndef LOCKFENCE_REFUSALS_H
#define LOCKFENCE_REFUSALS_H

#include "check.h"
#include "shmem.h"
#include "stats.h"

typedef struct Refusal
{
	LockfenceCounter counter;	/* which refusal */
	int			sqlstate;
	const char *resource;
	FenceToken	token;			/* presented; 0: none */
	FenceToken	mark;			/* what it was compared with; 0: nothing */
} Refusal;

typedef struct RefusalTotals
{
	int64		room;			/* how many are kept */
	int64		recorded;
	int64		overwritten;
} RefusalTotals;

extern void lockfence_refusals_init(void);
extern const SharedSegment lockfence_refusals_segment;
extern void lockfence_record_refusal(const FencedWrite *write, const Refusal *refusal);
extern RefusalTotals lockfence_refusal_totals(void);
extern void lockfence_forget_refusals(void);

#endif							/* LOCKFENCE_REFUSALS_H */
