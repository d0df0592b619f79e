/*
 * ddl.h
 *		DDL that would spoil the fence.
 */
#ifndef LOCKFENCE_DDL_H
#define LOCKFENCE_DDL_H

#include "access/xact.h"

extern void lockfence_ddl_at_xact(XactEvent event);
extern void lockfence_ddl_at_subxact(SubXactEvent event);

#endif							/* LOCKFENCE_DDL_H */
