/*
 * presented.c
 *		The tokens that a write presents: by its transaction, by the function that is
 *		called, or in a column.  Two that differ are refused.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/rel.h"

#include "check.h"
#include "fencedef.h"
#include "grant.h"
#include "lockfence.h"
#include "presented.h"
#include "refuse.h"
#include "stats.h"
#include "visible.h"
#include "xact.h"

/*
 * May the write use what its session was granted, if anything?  False if an advisory
 * fence refused that.
 */
bool
lockfence_admit_session_grant(const FencedWrite *write)
{
	const char *problem;

	if (!lockfence_session_has_grant())
		return true;
	problem = lockfence_grant_problem();
	if (problem == NULL)
		lockfence_require_grant_privilege();
	else
		lockfence_refuse_unreadable_grant(write, problem);
	return problem == NULL;
}

/* What the session was granted, once it was seen to be readable; 0: nothing. */
static FenceToken
granted_token(const char *resource)
{
	return lockfence_session_has_grant() && lockfence_grant_problem() == NULL ?
		lockfence_granted_token(resource) : 0;
}

/* The token presented for whatever is written, by the transaction or for the session. */
FenceToken
lockfence_ambient_in_force(void)
{
	FenceToken	ambient = lockfence_ambient_token();

	return ambient ? ambient : granted_token(NULL);
}

/* The token presented for the resource, by the transaction or for the session. */
FenceToken
lockfence_named_in_force(const char *resource)
{
	const HeldToken *held = lockfence_held_token(resource);

	return held ? held->token : granted_token(resource);
}

/* What is presented for a write to the resource, or to a row of the table (NULL). */
PresentedTokens
lockfence_presented_tokens(Relation rel, const char *resource)
{
	const CallToken *call = lockfence_call_token(rel);

	return (PresentedTokens) {
		.named = resource ? lockfence_named_in_force(resource) : 0,
		.ambient = lockfence_ambient_in_force(),
		.given = call ? call->token : 0,
		.is_settled = call && call->refused
	};
}

/* Two that differ are refused. */
static bool
agree(const FencedWrite *write, FenceToken token, const char *source,
	  FenceToken other, const char *other_source)
{
	if (token == 0 || other == 0 || token == other)
		return true;
	lockfence_refuse_conflicting(write, token, source, other, other_source);
	return false;
}

/*
 * Choose the token of a write, check->token; 0: it presents none.  False if it was refused, on an
 * advisory fence.
 */
bool
lockfence_choose_token(FenceCheck *check, const PresentedTokens *tokens)
{
	const FencedWrite *write = &check->write;
	FenceToken	ambient = lockfence_counted_ambient(check, tokens);
	FenceToken	presented = tokens->named ? tokens->named : ambient;

	if (!lockfence_admit_session_grant(write))
		return false;
	if (tokens->is_invalid)
	{
		lockfence_refuse_invalid(write, tokens->is_null, tokens->is_null ? 0 : tokens->column);
		return false;
	}
	if (!agree(write, tokens->named, "The token presented for it",
			   ambient, "the transaction's ambient token") ||
		!agree(write, tokens->given, "The token given",
			   presented, "the token that the transaction has presented"))
		return false;
	presented = presented ? presented : tokens->given;
	if (!agree(write, tokens->column, "The token in the column",
			   presented, "the token that the transaction has presented"))
		return false;
	check->token = tokens->column ? tokens->column : presented ? presented : tokens->carried;
	return true;
}

/* The same for DDL, which takes a token only by name. */
static char *
missing_ddl_hint(const char *resource)
{
	return psprintf("%sCall lockfence.present(%s, token) in this transaction before the command, or give the session the grant when it connects (lockfence.session_grant).",
					lockfence_ambient_in_force() == 0 ? "" :
					"A token that was presented without a resource does not count for DDL. ",
					lockfence_visible(quote_literal_cstr(resource)));
}

/* What a client should do to present a token. */
static char *
missing_hint(const FenceCheck *check)
{
	const Fence *fence = check->fence;
	const char *present = fence->resource ? "lockfence.present(resource, token)" :
		fence->named_only ? "lockfence.present(target, key, token)" : "lockfence.present(token)";

	if (!check->sets_columns || fence->token_column == NULL || fence->presented_only)
		return psprintf("Call %s in this transaction before the statement.", present);
	return psprintf("Call %s in this transaction before the statement, or set column \"%s\" to the token in the statement.",
					present, lockfence_visible(fence->token_column));
}

/* A write without a token: refuse it, if the fence says so. */
void
lockfence_settle_missing(const FenceCheck *check)
{
	char	   *hint;

	if (check->needs_none)
		return;
	if (!check->write.is_ddl && (check->fence->missing & check->command))
	{
		lockfence_count(check->write.rel, LOCKFENCE_UNPROTECTED);
		return;
	}
	hint = check->write.is_ddl ? missing_ddl_hint(check->write.resource) : missing_hint(check);
	if (check->fence != NULL && check->fence->named_only && lockfence_ambient_in_force() != 0)
		hint = psprintf("The fence accepts no token that was presented without its resource, as the ambient token is. %s", hint);
	if (lockfence_session_has_grant())
		hint = psprintf("The session's grant (lockfence.session_grant) does not name the resource. %s", hint);
	lockfence_refuse_missing(&check->write, check->write.is_ddl || check->fence->missing == 0, hint);
}
