/*
 * presented.c
 *		The tokens that a write presents: by its transaction, by the function that is
 *		called, or in a column.  Two that differ are refused.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "check.h"
#include "fencedef.h"
#include "lockfence.h"
#include "presented.h"
#include "refuse.h"
#include "stats.h"
#include "visible.h"
#include "xact.h"

/* What is presented for a write to the resource, or to a row of the table (NULL). */
PresentedTokens
lockfence_presented_tokens(Relation rel, const char *resource)
{
	const HeldToken *held = resource ? lockfence_held_token(resource) : NULL;
	const CallToken *call = lockfence_call_token(rel);

	return (PresentedTokens) {
		.named = held ? held->token : 0,
		.ambient = lockfence_ambient_token(),
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
 * The token of a write; 0: it presents none.  False if it was refused, on an
 * advisory fence.
 */
bool
lockfence_choose_token(const FencedWrite *write, const PresentedTokens *tokens, FenceToken *token)
{
	FenceToken	presented = tokens->named ? tokens->named : tokens->ambient;

	if (tokens->is_invalid)
	{
		lockfence_refuse_invalid(write, tokens->is_null, tokens->is_null ? 0 : tokens->column);
		return false;
	}
	if (!agree(write, tokens->named, "The token presented for it",
			   tokens->ambient, "the transaction's ambient token") ||
		!agree(write, tokens->given, "The token given",
			   presented, "the token that the transaction has presented"))
		return false;
	presented = presented ? presented : tokens->given;
	if (!agree(write, tokens->column, "The token in the column",
			   presented, "the token that the transaction has presented"))
		return false;
	*token = tokens->column ? tokens->column : presented ? presented : tokens->carried;
	return true;
}

/* What a client should do to present a token. */
static char *
missing_hint(const Fence *fence, bool sets_columns)
{
	const char *present = fence->resource ? "lockfence.present(resource, token)" :
		"lockfence.present(token)";

	if (!sets_columns || fence->token_column == NULL || fence->presented_only)
		return psprintf("Call %s in this transaction before the statement.", present);
	return psprintf("Call %s in this transaction before the statement, or set column \"%s\" to the token in the statement.",
					present, lockfence_visible(fence->token_column));
}

/* A write without a token: refuse it, if the fence says so. */
void
lockfence_settle_missing(const FenceCheck *check)
{
	if (check->needs_none)
		return;
	if (check->fence->missing_allowed)
		lockfence_count(check->write.rel, LOCKFENCE_UNPROTECTED);
	else
		lockfence_refuse_missing(&check->write,
								 missing_hint(check->fence, check->sets_columns));
}
