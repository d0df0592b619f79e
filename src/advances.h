/*
 * advances.h
 *		The marks that this transaction has changed.
 */
#ifndef LOCKFENCE_ADVANCES_H
#define LOCKFENCE_ADVANCES_H

#include "access/xact.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

#include "resource.h"
#include "takeovers.h"

extern void lockfence_advances_init(void);
extern void lockfence_note_advance(Relation rel, const char *resource, uint64 id, MarkChange change);
extern void lockfence_note_row_advance(Relation rel, TupleTableSlot *row, MarkChange change);
extern void lockfence_note_change(const ResourceKey *resource, MarkChange change);
extern void lockfence_advances_at_xact(XactEvent event);
extern void lockfence_advances_at_subxact(SubXactEvent event);

#endif							/* LOCKFENCE_ADVANCES_H */
