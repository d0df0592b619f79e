/*
 * unwritten.h
 *		The row that a guarded function's statement did not find.
 */
#ifndef LOCKFENCE_UNWRITTEN_H
#define LOCKFENCE_UNWRITTEN_H

#include "nodes/parsenodes.h"
#include "utils/rel.h"

#include "fencedef.h"
#include "jsonvalue.h"
#include "lockfence.h"

/* A call of which no row was written. */
typedef struct UnwrittenCall
{
	Relation	rel;
	const Fence *fence;
	AclMode		mode;			/* ACL_UPDATE or ACL_DELETE */
	FenceToken	token;
	const GivenColumn *keys;
	int			nkeys;
} UnwrittenCall;

extern void lockfence_admit_unwritten(void *call);

#endif							/* LOCKFENCE_UNWRITTEN_H */
