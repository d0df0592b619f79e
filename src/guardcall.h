/*
 * guardcall.h
 *		How a guard is called.
 */
#ifndef LOCKFENCE_GUARDCALL_H
#define LOCKFENCE_GUARDCALL_H

#include "fmgr.h"

extern void lockfence_require_guard(FunctionCallInfo fcinfo, bool row);

#endif							/* LOCKFENCE_GUARDCALL_H */
