/*
 * template.h
 *		Resource names.
 */
#ifndef LOCKFENCE_TEMPLATE_H
#define LOCKFENCE_TEMPLATE_H

#include "fencedef.h"

extern AttrNumber lockfence_resolve_column(Relation rel, const char *column);
extern void lockfence_take_token_type(Fence *fence, Oid type);
extern void lockfence_split_template(Fence *fence, const char *template);
extern void lockfence_resolve_template(Fence *fence, Relation rel);
extern char *lockfence_slot_resource(const Fence *fence, Relation rel,
									 TupleTableSlot *slot);
extern char *lockfence_find_resource(const Fence *fence, TupleTableSlot *slot);
extern char *lockfence_values_resource(const Fence *fence, const Datum *values,
									   const bool *missing);
extern char *lockfence_constant_resource(const Fence *fence);
extern bool lockfence_same_resource(const Fence *fence, Relation rel,
									TupleTableSlot *a, TupleTableSlot *b);

#endif							/* LOCKFENCE_TEMPLATE_H */
