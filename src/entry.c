/*
 * entry.c
 *		Functions in PL/pgSQL, entered from C, so that their errors tell the caller what
 *		is wrong with the call and not on which of their lines that was found.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "lockfence.h"

PG_FUNCTION_INFO_V1(lockfence_enter);

/* The function of the same schema and arguments whose name has a "_" before it. */
static Oid
inner_function(Oid outer)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(outer));
	Form_pg_proc proc = HeapTupleIsValid(tuple) ? (Form_pg_proc) GETSTRUCT(tuple) : NULL;
	Oid			inner = InvalidOid;

	if (proc != NULL)
	{
		char	   *name = psprintf("_%s", NameStr(proc->proname));

		inner = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
								PointerGetDatum(&proc->proargtypes),
								ObjectIdGetDatum(proc->pronamespace));
		ReleaseSysCache(tuple);
	}
	if (!OidIsValid(inner))
		elog(ERROR, "function %u has no inner function", outer);
	return inner;
}

/*
 * Call the inner function with the same arguments.  Of an error's context, what is
 * within it is left out; that of the caller is added anew.  The caller need not have
 * the privilege to call the inner function, as the server checks only the outer one's.
 */
Datum
lockfence_enter(PG_FUNCTION_ARGS)
{
	LOCAL_FCINFO(call, FUNC_MAX_ARGS);
	MemoryContext context = CurrentMemoryContext;
	FmgrInfo	function;
	Datum		result = (Datum) 0;

	fmgr_info(inner_function(fcinfo->flinfo->fn_oid), &function);
	InitFunctionCallInfoData(*call, &function, PG_NARGS(), PG_GET_COLLATION(), NULL, NULL);
	memcpy(call->args, fcinfo->args, PG_NARGS() * sizeof(NullableDatum));
	PG_TRY();
	{
		result = FunctionCallInvoke(call);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		error->context = NULL;
		ThrowErrorData(error);
	}
	PG_END_TRY();
	fcinfo->isnull = call->isnull;
	return result;
}
