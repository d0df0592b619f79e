/*
 * presented.c
 *		The tokens that a write presents: by its transaction, by the function that is
 *		called, or in a column.  Two that differ are refused.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/rel.h"

#include "call.h"
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

/* What the session was granted for the resource, or for whatever is written (NULL); NULL: nothing that can be read. */
static const Grant *
find_grant(const char *resource)
{
	return lockfence_grant_problem() == NULL ? lockfence_find_grant(resource) : NULL;
}

/* Add what the session was granted, where the transaction has presented nothing else. */
static void
add_session_grant(PresentedTokens *tokens, const char *resource)
{
	const Grant *named = resource && tokens->named == 0 ? find_grant(resource) : NULL;
	const Grant *ambient = tokens->ambient == 0 ? find_grant(NULL) : NULL;

	if (ambient != NULL)
	{
		tokens->ambient = ambient->token;
		if (tokens->named == 0)
			tokens->limit.until = ambient->valid_until;
	}
	if (named != NULL)
	{
		tokens->named = named->token;
		tokens->limit.until = named->valid_until;
	}
}

/* What was presented for the resource, or for whatever is written (NULL), by the transaction or for the session. */
static inline PresentedTokens
tokens_in_force(const char *resource)
{
	const HeldToken *held = resource ? lockfence_held_token(resource) : NULL;
	PresentedTokens tokens = {
		.named = held ? held->token : 0,
		.ambient = lockfence_ambient_token(),
		.limit = held ? held->limit : (TokenLimit) {0}
	};

	if (lockfence_session_has_grant())
		add_session_grant(&tokens, resource);
	return tokens;
}

/* The token presented for whatever is written. */
FenceToken
lockfence_ambient_in_force(void)
{
	return tokens_in_force(NULL).ambient;
}

/* The token presented for the resource. */
FenceToken
lockfence_named_in_force(const char *resource)
{
	return tokens_in_force(resource).named;
}

/* What is presented for the resource by its name alone, as DDL takes it. */
PresentedTokens
lockfence_named_tokens(const char *resource)
{
	PresentedTokens tokens = tokens_in_force(resource);

	if (tokens.named == 0)
		tokens.limit = (TokenLimit) {0};
	tokens.ambient = 0;
	return tokens;
}

/* What is presented for a write to the resource, or to a row of the table (NULL). */
PresentedTokens
lockfence_presented_tokens(Relation rel, const char *resource)
{
	const CallToken *call = lockfence_call_token(rel);
	PresentedTokens tokens = tokens_in_force(resource);

	tokens.given = call ? call->token : 0;
	tokens.is_settled = call && call->refused;
	return tokens;
}

/*
 * What is presented by a function that is given a token for the resource, or for one that is not
 * known yet (NULL).  It takes over from a token that was presented for it, and only that one's own
 * limit in time stays.
 */
PresentedTokens
lockfence_given_token(const char *resource, FenceToken token)
{
	PresentedTokens tokens = {.ambient = lockfence_ambient_token(),.given = token};

	if (!lockfence_session_has_grant() && !lockfence_has_limits)
		return tokens;
	tokens = tokens_in_force(resource);
	if ((tokens.named ? tokens.named : tokens.ambient) != token)
		tokens.limit = (TokenLimit) {0};
	tokens.named = 0;
	tokens.given = token;
	return tokens;
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

/* By which way the token of the check came. */
AdvanceWay
lockfence_way_of_token(const FenceCheck *check)
{
	const PresentedTokens *tokens = check->tokens;

	if (tokens == NULL)
		return BY_ISSUE;
	if (tokens->given != 0)
		return check->fence ? BY_GUARDED : BY_PRESENT;
	return tokens->named != 0 || tokens->ambient != 0 ? BY_PRESENT : BY_COLUMN;
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
	if (lockfence_ambient_was_lost && !check->write.is_ddl)
		hint = psprintf("A token that lockfence.present(token) presents ends with its transaction, as it did before this one: begin a transaction first. %s", hint);
	if (lockfence_session_has_grant())
		hint = psprintf("The session's grant (lockfence.session_grant) does not name the resource. %s", hint);
	lockfence_refuse_missing(&check->write, check->write.is_ddl || check->fence->missing == 0, hint);
}
