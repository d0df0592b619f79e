/*
 * present.c
 *		present(), presented() and is_current(): tokens that clients present, and ask about.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "advisory.h"
#include "args.h"
#include "check.h"
#include "epoch.h"
#include "fence.h"
#include "fencecache.h"
#include "fencedef.h"
#include "grant.h"
#include "granted.h"
#include "instant.h"
#include "lockfence.h"
#include "mark.h"
#include "names.h"
#include "presented.h"
#include "readable.h"
#include "refuse.h"
#include "rowhold.h"
#include "rows.h"
#include "state.h"
#include "stats.h"
#include "xact.h"

PG_FUNCTION_INFO_V1(lockfence_present);
PG_FUNCTION_INFO_V1(lockfence_present_issued);
PG_FUNCTION_INFO_V1(lockfence_present_ambient);
PG_FUNCTION_INFO_V1(lockfence_presented);
PG_FUNCTION_INFO_V1(lockfence_is_current);

/*
 * The end that the caller sets for a token.  Which tables were written while it had
 * none is not known, so that any write of the transaction counts.
 */
static TokenLimit
given_limit(FunctionCallInfo fcinfo, const char *resource, FenceToken token)
{
	const HeldToken *held = lockfence_held_token(resource);

	return (TokenLimit) {
		.until = PG_ARGISNULL(2) ? 0 : lockfence_limit_at(PG_GETARG_TIMESTAMPTZ(2)),
		.written = held != NULL && held->token == token && held->limit.until == 0 &&
			TransactionIdIsValid(GetTopTransactionIdIfAny())
	};
}

/* A token that is presented for a resource, and the mark before it. */
typedef struct Presenting
{
	FenceCheck	check;
	PresentedTokens tokens;
	FenceToken	previous;		/* 0: none */
	bool		accepted;
} Presenting;

static void
check_presented(void *arg)
{
	Presenting *presenting = (Presenting *) arg;

	lockfence_present_grant_first(&presenting->check, presenting->tokens.given);
	presenting->accepted = lockfence_admit(&presenting->check, &presenting->tokens,
										   &presenting->previous) != 0;
}

/*
 * The same, where a refusal is only reported: the writes that follow present the
 * token all the same, and are reported too.
 */
static void
check_advisorily(Presenting *presenting)
{
	if (!lockfence_decide_advisorily(&presenting->check.write, NULL, check_presented, presenting))
		presenting->previous = 0;
	if (!presenting->accepted)
		lockfence_remember_refused(presenting->check.write.resource, presenting->tokens.given);
}

/* Present a token for a resource; returns the previous mark, or null. */
static Datum
present(FunctionCallInfo fcinfo, bool by_administrator)
{
	Presenting	presenting = {.check.by_administrator = by_administrator};
	PresentedTokens *tokens = &presenting.tokens;
	FencedWrite *write = &presenting.check.write;
	bool		sets_limit = PG_NARGS() > 2;

	write->resource = lockfence_require_resource(fcinfo, 0);
	write->advisory = lockfence_is_advisory(NULL);
	lockfence_require_token(fcinfo, 1);
	*tokens = lockfence_given_token(write->resource, PG_GETARG_INT64(1));
	tokens->ambient = 0;
	if (sets_limit)
		tokens->limit = given_limit(fcinfo, write->resource, tokens->given);
	PreventCommandDuringRecovery("lockfence.present()");

	if (write->advisory)
		check_advisorily(&presenting);
	else
		check_presented(&presenting);
	if (sets_limit)
		lockfence_limit_token(write->resource, tokens->given, tokens->limit);
	lockfence_reveal_name(write->resource);
	if (presenting.accepted)
		lockfence_count(NULL, LOCKFENCE_ACCEPTED);
	if (presenting.previous != 0)
		PG_RETURN_INT64(presenting.previous);
	lockfence_tell_unknown(write->resource);
	PG_RETURN_NULL();
}

/* present(resource text, token fence_token [, valid_until timestamptz]) -> the previous mark, or null */
Datum
lockfence_present(PG_FUNCTION_ARGS)
{
	return present(fcinfo, false);
}

/* _present(resource text, token fence_token): the same, for functions that run as their owner */
Datum
lockfence_present_issued(PG_FUNCTION_ARGS)
{
	return present(fcinfo, true);
}

/* present(token): the ambient token of this transaction */
Datum
lockfence_present_ambient(PG_FUNCTION_ARGS)
{
	lockfence_require_token(fcinfo, 0);
	lockfence_set_ambient_token(PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

/* The name of a resource that a row gave, or what stands for it if the caller may not read the name. */
static const char *
readable_name(const char *resource, Oid relid)
{
	Relation	rel = OidIsValid(relid) ? try_relation_open(relid, AccessShareLock) : NULL;
	const Fence *fence = rel ? lockfence_relation_fence(rel) : NULL;

	if (rel == NULL)
		return OidIsValid(relid) ? "of a dropped table" : resource;
	if (!lockfence_may_read(rel, fence))
		resource = fence && fence->resource ? fence->resource : lockfence_row_name(rel, NULL);
	relation_close(rel, AccessShareLock);
	return resource;
}

/* Add one row of presented(). */
static void
put_presented(ReturnSetInfo *rsinfo, const char *resource, FenceToken token)
{
	Datum		values[2];
	bool		isnull[2] = {resource == NULL, false};

	values[0] = resource ? CStringGetTextDatum(resource) : (Datum) 0;
	values[1] = Int64GetDatum(token);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

/* The same, of what the transaction holds. */
static void
put_held(const char *resource, const HeldToken *held, void *rsinfo)
{
	put_presented((ReturnSetInfo *) rsinfo, readable_name(resource, held->table), held->token);
}

/* The same, of a row that the caller has named. */
static void
put_row(const char *name, FenceToken token, void *rsinfo)
{
	put_presented((ReturnSetInfo *) rsinfo, name, token);
}

/* The same, of what the session was granted and the transaction does not hold yet. */
static void
put_granted(const Grant *grant, void *rsinfo)
{
	if (grant->resource == NULL)
		return;
	if (lockfence_held_token(grant->resource) == NULL)
		put_presented((ReturnSetInfo *) rsinfo, grant->resource, grant->token);
	else
		lockfence_reveal_name(grant->resource);
}

/* presented(): the ambient token (resource null), the session's grant, and the memo */
Datum
lockfence_presented(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	FencedWrite nowhere = {0};
	FenceToken	ambient;

	(void) lockfence_admit_session_grant(&nowhere);
	ambient = lockfence_ambient_in_force();
	lockfence_begin_rows(fcinfo);
	if (ambient != 0)
		put_presented(rsinfo, NULL, ambient);
	lockfence_visit_grants(put_granted, rsinfo);
	lockfence_visit_held_tokens(put_held, rsinfo);
	lockfence_visit_row_holds(put_row, rsinfo);
	return (Datum) 0;
}

/* is_current(resource text, token fence_token): advice, without any lock */
Datum
lockfence_is_current(PG_FUNCTION_ARGS)
{
	char	   *resource = lockfence_require_resource(fcinfo, 0);
	FenceToken	mark;

	lockfence_require_token(fcinfo, 1);
	lockfence_require_no_row(resource);
	mark = lockfence_mark_peek(resource);
	if (mark == 0)
		mark = lockfence_state_floor();
	PG_RETURN_BOOL(lockfence_would_pass(PG_GETARG_INT64(1), mark, false));
}
