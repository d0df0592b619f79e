/*
 * rowname.h
 *		The name of a row that is its own resource.
 */
#ifndef LOCKFENCE_ROWNAME_H
#define LOCKFENCE_ROWNAME_H

#include "executor/tuptable.h"
#include "utils/rel.h"

/* A row as those who administer the server see it. */
typedef struct RowName
{
	const char *text;
	uint64		id;				/* 0: it cannot be told from other rows */
} RowName;

extern RowName lockfence_name_row(Relation rel, TupleTableSlot *row);

#endif							/* LOCKFENCE_ROWNAME_H */
