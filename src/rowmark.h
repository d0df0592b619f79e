/*
 * rowmark.h
 *		The mark of one row of a row fence.
 */
#ifndef LOCKFENCE_ROWMARK_H
#define LOCKFENCE_ROWMARK_H

#include "rowtokens.h"

extern bool lockfence_sets_row_mark;
extern bool lockfence_admits_row_mark(const RowGuard *guard);

#endif							/* LOCKFENCE_ROWMARK_H */
