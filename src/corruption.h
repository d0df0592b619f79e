/*
 * corruption.h
 *		Marks that are not what they should be.
 */
#ifndef LOCKFENCE_CORRUPTION_H
#define LOCKFENCE_CORRUPTION_H

#include "mark.h"

extern void lockfence_require_row(const MarkScan *scan, ItemPointer tid);
extern void lockfence_report_corruption(const MarkScan *scan);

#endif							/* LOCKFENCE_CORRUPTION_H */
