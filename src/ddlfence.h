/*
 * ddlfence.h
 *		The resources that DDL needs a grant of.
 */
#ifndef LOCKFENCE_DDLFENCE_H
#define LOCKFENCE_DDLFENCE_H

#include "nodes/pg_list.h"

extern List *lockfence_ddl_resources(void);

#endif							/* LOCKFENCE_DDLFENCE_H */
