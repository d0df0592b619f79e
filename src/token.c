/*
 * token.c
 *		The fencing token: made, split, printed, required of a caller.
 *
 * No catalog, no state.  Tokens are int8 from end to end: nothing here or
 * elsewhere goes through a float, which would round above 2^53.
 */
#include "postgres.h"

#include "lockfence.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(lockfence_make_token);
PG_FUNCTION_INFO_V1(lockfence_token_epoch_sql);
PG_FUNCTION_INFO_V1(lockfence_token_revision_sql);

/* The epoch of a token, 0..32767. */
int
lockfence_token_epoch(FenceToken token)
{
	return (int) (token >> LOCKFENCE_REVISION_BITS);
}

/* The revision of a token, 0..2^48-1. */
static int64
token_revision(FenceToken token)
{
	return token & LOCKFENCE_MAX_REVISION;
}

/* A token with its parts, as every message shows it. */
char *
lockfence_token_text(FenceToken token)
{
	if (token <= 0)
		return psprintf(INT64_FORMAT, token);
	return psprintf(INT64_FORMAT " (epoch %d, revision " INT64_FORMAT ")",
					token, lockfence_token_epoch(token), token_revision(token));
}

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

/* An error for a token part that is out of its range. */
static void
refuse_part(const char *part, int64 value, int64 max)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_FENCE_TOKEN),
			 errmsg("%s " INT64_FORMAT " is out of range for a fencing token",
					part, value),
			 errdetail("It must be from 0 to " INT64_FORMAT ".", max)));
}

/* make_token(epoch int, revision bigint) */
Datum
lockfence_make_token(PG_FUNCTION_ARGS)
{
	int32		epoch;
	int64		revision;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FENCE_TOKEN),
				 errmsg("a fencing token cannot be made from a null epoch or revision")));

	epoch = PG_GETARG_INT32(0);
	revision = PG_GETARG_INT64(1);
	if (epoch < 0 || epoch > LOCKFENCE_MAX_EPOCH)
		refuse_part("epoch", epoch, LOCKFENCE_MAX_EPOCH);
	if (revision < 0 || revision > LOCKFENCE_MAX_REVISION)
		refuse_part("revision", revision, LOCKFENCE_MAX_REVISION);
	if (epoch == 0 && revision == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FENCE_TOKEN),
				 errmsg("epoch 0 with revision 0 is not a fencing token"),
				 errdetail("A token is always greater than zero.")));

	PG_RETURN_INT64(((int64) epoch << LOCKFENCE_REVISION_BITS) | revision);
}

/* token_epoch(fence_token); strict */
Datum
lockfence_token_epoch_sql(PG_FUNCTION_ARGS)
{
	lockfence_require_token(fcinfo, 0);
	PG_RETURN_INT32(lockfence_token_epoch(PG_GETARG_INT64(0)));
}

/* token_revision(fence_token); strict */
Datum
lockfence_token_revision_sql(PG_FUNCTION_ARGS)
{
	lockfence_require_token(fcinfo, 0);
	PG_RETURN_INT64(token_revision(PG_GETARG_INT64(0)));
}
