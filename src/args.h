/*
 * args.h
 *		Arguments of the SQL functions, checked.
 */
#ifndef LOCKFENCE_ARGS_H
#define LOCKFENCE_ARGS_H

#include "fmgr.h"
#include "storage/lockdefs.h"
#include "utils/rel.h"

extern void lockfence_require_token(FunctionCallInfo fcinfo, int argno);
extern char *lockfence_require_resource(FunctionCallInfo fcinfo, int argno);
extern void lockfence_require_trigger(FunctionCallInfo fcinfo);
extern Relation lockfence_open_table(Oid relid, LOCKMODE mode);

#endif							/* LOCKFENCE_ARGS_H */
