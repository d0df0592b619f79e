/*
 * intact.h
 *		Are the tables that are written to directly as they were made?
 */
#ifndef LOCKFENCE_INTACT_H
#define LOCKFENCE_INTACT_H

#include "access/htup.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"

typedef enum ThingHarm
{
	THING_IS_HARMLESS,
	THING_SPOILS_WRITES,		/* they would be lost or wrong */
	THING_SPOILS_READS			/* not even that can be done */
} ThingHarm;

typedef struct ForeignThing
{
	Oid			relid;
	const char *table;			/* its name, without the schema */
	const char *kind;
	const char *name;			/* NULL: there is one of the kind only */
	ThingHarm	harm;
} ForeignThing;

extern List *lockfence_foreign_things_of_all(void);
extern const char *lockfence_own_table(Oid relid);
extern bool lockfence_index_is_sorted(HeapTuple tuple);
extern char *lockfence_thing_text(const ForeignThing *thing);
extern bool lockfence_is_intact(Relation rel);
extern void lockfence_require_intact(Relation rel);
extern void lockfence_require_readable(Relation rel);
extern struct ResultRelInfo *lockfence_open_indexes(Relation rel);
extern HeapTuple lockfence_form_row(Relation rel, const NullableDatum *columns, int ncolumns);

#endif							/* LOCKFENCE_INTACT_H */
