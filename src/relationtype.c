/*
 * relationtype.c
 *		The type of a column that names a table on record.
 *
 * It is a regclass but for one thing: its input takes a name that there is no
 * table of as 0, for which the trigger on lockfence.fenced makes no row.  A dump
 * that leaves out a fenced table brings all the other records.
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

PG_FUNCTION_INFO_V1(lockfence_relation_in);
PG_FUNCTION_INFO_V1(lockfence_relation_out);
PG_FUNCTION_INFO_V1(lockfence_relation_recv);
PG_FUNCTION_INFO_V1(lockfence_relation_send);

/* The table of that name; InvalidOid: there is none. */
static Oid
find_relation(const char *name)
{
	LOCAL_FCINFO(call, 1);
	Datum		relation;

	/* of a table that was dropped; another may have its number here */
	if (name[0] == '-' || strspn(name, "0123456789") == strlen(name))
		return InvalidOid;
	InitFunctionCallInfoData(*call, NULL, 1, InvalidOid, NULL, NULL);
	call->args[0].value = CStringGetTextDatum(name);
	call->args[0].isnull = false;
	relation = to_regclass(call);
	return call->isnull ? InvalidOid : DatumGetObjectId(relation);
}

/* Input and output of lockfence._relation, whose binary form is a name as well. */
Datum
lockfence_relation_in(PG_FUNCTION_ARGS)
{
	PG_RETURN_OID(find_relation(PG_GETARG_CSTRING(0)));
}

Datum
lockfence_relation_out(PG_FUNCTION_ARGS)
{
	return regclassout(fcinfo);
}

Datum
lockfence_relation_recv(PG_FUNCTION_ARGS)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			length;

	PG_RETURN_OID(find_relation(pq_getmsgtext(message, message->len - message->cursor, &length)));
}

Datum
lockfence_relation_send(PG_FUNCTION_ARGS)
{
	char	   *name = DatumGetCString(regclassout(fcinfo));
	StringInfoData message;

	pq_begintypsend(&message);
	pq_sendtext(&message, name, strlen(name));
	PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}
