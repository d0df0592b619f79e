/*
 * guardtype.h
 *		Which functions are guards, and what their triggers must be.
 */
#ifndef LOCKFENCE_GUARDTYPE_H
#define LOCKFENCE_GUARDTYPE_H

#include "catalog/pg_trigger.h"

/* pg_trigger.tgtype of each guard */
#define GUARD_STATEMENT_TYPE \
	(TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE)
#define GUARD_ROW_TYPE (TRIGGER_TYPE_ROW | GUARD_STATEMENT_TYPE)
#define GUARD_TRUNCATE_TYPE (TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_TRUNCATE)

extern int16 lockfence_guard_type(Oid function);

#endif							/* LOCKFENCE_GUARDTYPE_H */
