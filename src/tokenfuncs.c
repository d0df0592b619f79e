/*
 * tokenfuncs.c
 *		make_token(), token_epoch() and token_revision().
 */
#include "postgres.h"

#include "fmgr.h"

#include "args.h"
#include "lockfence.h"
#include "token.h"

PG_FUNCTION_INFO_V1(lockfence_make_token);
PG_FUNCTION_INFO_V1(lockfence_token_epoch_sql);
PG_FUNCTION_INFO_V1(lockfence_token_revision_sql);

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
	PG_RETURN_INT64(lockfence_token_revision(PG_GETARG_INT64(0)));
}
