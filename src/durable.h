/*
 * durable.h
 *		Commits that must not be lost.
 */
#ifndef LOCKFENCE_DURABLE_H
#define LOCKFENCE_DURABLE_H

#include "access/xact.h"

extern void lockfence_commit_durably(void);
extern void lockfence_durable_at_xact(XactEvent event);

#endif							/* LOCKFENCE_DURABLE_H */
