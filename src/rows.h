/*
 * rows.h
 *		Returning a set of rows.
 */
#ifndef LOCKFENCE_ROWS_H
#define LOCKFENCE_ROWS_H

#include "fmgr.h"

extern void lockfence_begin_rows(FunctionCallInfo fcinfo);

#endif							/* LOCKFENCE_ROWS_H */
