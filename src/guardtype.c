/*
 * guardtype.c
 *		Which functions are guards.  A guard is known by its function, since every owner
 *		of a table can give a trigger any name, and rename a guard.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "utils/syscache.h"

#include "guardtype.h"
#include "lockfence.h"

PG_FUNCTION_INFO_V1(lockfence_is_guard);

/* What a trigger of a guard's function must be; 0: it is not such a function. */
int16
lockfence_guard_type(Oid function)
{
	static const struct
	{
		const char *function;
		int16		type;
	}			guards[] = {
		{"guard_row", GUARD_ROW_TYPE},
		{"guard_statement", GUARD_STATEMENT_TYPE},
		{"guard_truncate", GUARD_TRUNCATE_TYPE}
	};
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc proc;
	int16		type = 0;

	if (!HeapTupleIsValid(tuple))
		return 0;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	for (int i = 0; i < lengthof(guards); i++)
	{
		if (strcmp(NameStr(proc->proname), guards[i].function) == 0 && proc->pronargs == 0 &&
			proc->pronamespace == get_namespace_oid(LOCKFENCE_SCHEMA, true))
			type = guards[i].type;
	}
	ReleaseSysCache(tuple);
	return type;
}

/* _is_guard(function oid): is it the function of a guard, of whatever kind? */
Datum
lockfence_is_guard(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(lockfence_guard_type(PG_GETARG_OID(0)) != 0);
}
