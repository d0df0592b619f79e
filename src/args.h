/*
 * args.h
 *		What callers give, required of them.
 */
#ifndef LOCKFENCE_ARGS_H
#define LOCKFENCE_ARGS_H

#include "fmgr.h"

extern void lockfence_require_token(FunctionCallInfo fcinfo, int argno);
extern char *lockfence_require_resource(FunctionCallInfo fcinfo, int argno);

#endif							/* LOCKFENCE_ARGS_H */
