/*
 * bypass.h
 *		What passes by lockfence.bypass.
 */
#ifndef LOCKFENCE_BYPASS_H
#define LOCKFENCE_BYPASS_H

#include "utils/rel.h"

#include "settings.h"

extern bool lockfence_note_bypass(Relation rel);

/* Does the setting let a write to the table pass, or (NULL) DDL? */
static inline bool
lockfence_is_bypassed(Relation rel)
{
	return unlikely(lockfence_bypass) && lockfence_note_bypass(rel);
}

#endif							/* LOCKFENCE_BYPASS_H */
