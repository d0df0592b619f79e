/*
 * bypass.h
 *		What passes by lockfence.bypass.
 */
#ifndef LOCKFENCE_BYPASS_H
#define LOCKFENCE_BYPASS_H

#include "utils/rel.h"

extern bool lockfence_is_bypassed(Relation rel);

#endif							/* LOCKFENCE_BYPASS_H */
