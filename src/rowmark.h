/*
 * rowmark.h
 *		The mark of one row of a row fence.
 */
#ifndef LOCKFENCE_ROWMARK_H
#define LOCKFENCE_ROWMARK_H

#include "fmgr.h"
#include "storage/lockdefs.h"

#include "jsonvalue.h"
#include "rowtokens.h"

/* A call for one row. */
typedef struct RowCall
{
	Relation	target;
	const Fence *fence;
	FenceToken	token;
	GivenColumn *keys;
	int			nkeys;
	Relation	holder;			/* the target or its partition that has the row */
	TupleTableSlot *row;		/* NULL: there is no such row */
} RowCall;

extern const Fence *lockfence_require_row_fence(Relation rel);
extern RowCall lockfence_begin_row_call(FunctionCallInfo fcinfo, LOCKMODE mode);
extern bool lockfence_find_row(RowCall *call, bool lock);
extern void lockfence_refuse_no_row(const RowCall *call);
extern void lockfence_refuse_lost_mark(Relation holder, const char *hint);
extern void lockfence_end_row_call(RowCall *call);
extern bool lockfence_sets_row_mark;
extern bool lockfence_admits_row_mark(const RowGuard *guard);

#endif							/* LOCKFENCE_ROWMARK_H */
