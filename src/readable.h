/*
 * readable.h
 *		Names that rows give, as far as the caller may read those.
 */
#ifndef LOCKFENCE_READABLE_H
#define LOCKFENCE_READABLE_H

#include "utils/rel.h"

#include "check.h"

extern bool lockfence_may_read(Relation rel, const struct Fence *fence);
extern const char *lockfence_readable_resource(const FencedWrite *write);

#endif							/* LOCKFENCE_READABLE_H */
