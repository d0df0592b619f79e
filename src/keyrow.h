/*
 * keyrow.h
 *		The rows that a unique key names.
 */
#ifndef LOCKFENCE_KEYROW_H
#define LOCKFENCE_KEYROW_H

#include "executor/tuptable.h"
#include "nodes/pg_list.h"
#include "storage/itemptr.h"
#include "storage/lockdefs.h"
#include "utils/rel.h"

#include "asowner.h"
#include "jsonvalue.h"

/* Where a row is. */
typedef struct KeyRow
{
	Oid			relid;			/* the table itself, or its partition or child */
	ItemPointerData tid;
} KeyRow;

extern FormerSelf lockfence_become_owner(Relation rel, bool sees_all);
extern char *lockfence_table_in_sql(Relation rel);
extern GivenColumn *lockfence_unique_key(Relation rel, const GivenColumn *keys, int nkeys, int *nunique);
extern void lockfence_query_key(Relation rel, const char *columns, const GivenColumn *keys,
								int nkeys, bool lock);
extern List *lockfence_rows_with_key(Relation rel, const GivenColumn *keys, int nkeys, bool lock);
extern TupleTableSlot *lockfence_fetch_row(const KeyRow *found, LOCKMODE mode, Relation *holder);
extern TransactionId lockfence_row_writer(TupleTableSlot *row);
extern void lockfence_drop_row(TupleTableSlot *row, Relation holder);

#endif							/* LOCKFENCE_KEYROW_H */
