/*
 * hint.h
 *		Where this backend saw marks last.
 */
#ifndef LOCKFENCE_HINT_H
#define LOCKFENCE_HINT_H

#include "storage/buf.h"
#include "storage/itemptr.h"

#include "resource.h"

extern bool lockfence_hint_find(const ResourceKey *resource, ItemPointer tid,
								Buffer *buffer);
extern void lockfence_hint_put(const ResourceKey *resource, ItemPointer tid,
							   Buffer buffer);

#endif							/* LOCKFENCE_HINT_H */
