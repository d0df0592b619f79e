/*
 * jsonvalue.h
 *		JSON that a caller gives.
 */
#ifndef LOCKFENCE_JSONVALUE_H
#define LOCKFENCE_JSONVALUE_H

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/jsonb.h"
#include "utils/rel.h"

/* One column that a caller names. */
typedef struct GivenColumn
{
	AttrNumber	attno;
	const char *name;
	Oid			type;
	JsonbValue	given;
	Datum		value;			/* ... converted; not before lockfence_convert_columns() */
	bool		isnull;
} GivenColumn;

extern GivenColumn *lockfence_given_columns(Relation rel, Jsonb *object,
											const char *what, int *ncolumns);
extern void lockfence_convert_columns(Relation rel, GivenColumn *columns, int ncolumns);
extern void lockfence_append_key(StringInfo statement, const GivenColumn *key, int param);
extern Jsonb *lockfence_require_jsonb(FunctionCallInfo fcinfo, int argno,
									   const char *what);

#endif							/* LOCKFENCE_JSONVALUE_H */
