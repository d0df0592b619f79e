/*
 * damage.h
 *		Marks that are not what they should be.
 */
#ifndef LOCKFENCE_DAMAGE_H
#define LOCKFENCE_DAMAGE_H

#include "mark.h"

extern void lockfence_require_row(const MarkScan *scan, ItemPointer tid);
extern void lockfence_report_damage(const MarkScan *scan);

#endif							/* LOCKFENCE_DAMAGE_H */
