/*
 * timeline.h
 *		The gate, shut when the database's history went back.
 */
#ifndef LOCKFENCE_TIMELINE_H
#define LOCKFENCE_TIMELINE_H

#include "access/xact.h"

#include "check.h"

extern bool lockfence_gate_is_open;
extern bool lockfence_try_gate(const FencedWrite *write);
extern bool lockfence_gate_is_sealed(void);
extern void lockfence_timeline_init(void);
extern void lockfence_timeline_at_relcache(Oid relid);
extern void lockfence_timeline_at_xact(XactEvent event);

/* May anything be written at all?  Refuses it if not. */
static inline bool
lockfence_pass_gate(const FencedWrite *write)
{
	return likely(lockfence_gate_is_open) || lockfence_try_gate(write);
}

#endif							/* LOCKFENCE_TIMELINE_H */
