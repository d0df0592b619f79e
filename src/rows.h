/*
 * rows.h
 *		Returning a row, or a set of rows.
 */
#ifndef LOCKFENCE_ROWS_H
#define LOCKFENCE_ROWS_H

#include "fmgr.h"

extern Datum lockfence_return_row(FunctionCallInfo fcinfo, Datum *values, bool *isnull);
extern void lockfence_begin_rows(FunctionCallInfo fcinfo);

#endif							/* LOCKFENCE_ROWS_H */
