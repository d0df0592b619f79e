/*
 * limit.h
 *		Until when a token counts.
 */
#ifndef LOCKFENCE_LIMIT_H
#define LOCKFENCE_LIMIT_H

#include "check.h"
#include "xact.h"

/* Tells when the lease with that token ends; false: there is none. */
typedef bool (*LeaseEnd) (const char *resource, FenceToken token, TimestampTz *end);

extern void lockfence_set_lease_end(LeaseEnd function);
extern bool lockfence_keep_limit(const FencedWrite *write, FenceToken token,
								 TokenLimit limit);
extern void lockfence_limit_at_xact(XactEvent event);

#endif							/* LOCKFENCE_LIMIT_H */
