/*
 * unchecked.h
 *		Ambient tokens that were compared with no mark.
 */
#ifndef LOCKFENCE_UNCHECKED_H
#define LOCKFENCE_UNCHECKED_H

#include "access/xact.h"

extern void lockfence_unchecked_init(void);
extern void lockfence_unchecked_at_xact(XactEvent event);

#endif							/* LOCKFENCE_UNCHECKED_H */
