/*
 * args.c
 *		Arguments of the SQL functions, checked: tokens, resources, tables.
 */
#include "postgres.h"

#include "access/relation.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "utils/builtins.h"

#include "args.h"
#include "check.h"
#include "lockfence.h"
#include "refuse.h"

/* Raise LF003 unless the argument is a token. */
void
lockfence_require_token(FunctionCallInfo fcinfo, int argno)
{
	FencedWrite nowhere = {0};

	if (PG_ARGISNULL(argno))
		lockfence_refuse_invalid(&nowhere, true, 0);
	else if (PG_GETARG_INT64(argno) <= 0)
		lockfence_refuse_invalid(&nowhere, false, PG_GETARG_INT64(argno));
}

/* The argument as a resource name; an error if it cannot be one. */
char *
lockfence_require_resource(FunctionCallInfo fcinfo, int argno)
{
	char	   *resource;

	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("resource must not be null"),
				 errhint("Name the resource as its lock is named.")));

	resource = text_to_cstring(PG_GETARG_TEXT_PP(argno));
	if (resource[0] == '\0' || strlen(resource) > LOCKFENCE_MAX_RESOURCE_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("resource name must be 1 to %d bytes long",
						LOCKFENCE_MAX_RESOURCE_LEN),
				 errdetail("The name given is %zu bytes long.", strlen(resource))));
	return resource;
}

/* Open a relation that a caller names by its OID, which may not exist. */
Relation
lockfence_open_table(Oid relid, LOCKMODE mode)
{
	Relation	rel = try_relation_open(relid, mode);

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("there is no relation with OID %u", relid)));
	return rel;
}

/* Raise an error unless called as a trigger, of whatever kind. */
void
lockfence_require_trigger(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function must be called as a trigger")));
}
