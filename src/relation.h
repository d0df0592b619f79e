/*
 * relation.h
 *		The table of marks and its indexes.
 */
#ifndef LOCKFENCE_RELATION_H
#define LOCKFENCE_RELATION_H

#include "storage/lockdefs.h"
#include "utils/rel.h"

#define LOCKFENCE_MARK_RESOURCE 3	/* column */

extern bool lockfence_relation_exists(const char *name);
extern Oid	lockfence_relation_oid(const char *name);
extern Oid	lockfence_mark_relid(void);
extern Relation lockfence_open_relation(const char *name, LOCKMODE mode);
extern Relation lockfence_open_marks(void);
extern Oid	lockfence_mark_index(void);
extern Oid	lockfence_mark_hash(void);
extern void lockfence_require_intact_marks(Relation marks);
extern void lockfence_relation_at_relcache(Oid relid);

#endif							/* LOCKFENCE_RELATION_H */
