/*
 * guarded.h
 *		Guarded writes.
 */
#ifndef LOCKFENCE_GUARDED_H
#define LOCKFENCE_GUARDED_H

#include "nodes/parsenodes.h"

#include "fencedef.h"
#include "jsonvalue.h"

extern void lockfence_guarded_init(void);
extern uint64 lockfence_guarded_set(Relation rel, const Fence *fence, GivenColumn *keys, int nkeys,
									GivenColumn *change, FenceToken token);
extern void lockfence_require_any_privilege(Oid relid, AclMode mode);
extern void lockfence_require_column_privileges(Relation rel, AclMode mode, int ncolumns,
												const GivenColumn *columns);

#endif							/* LOCKFENCE_GUARDED_H */
