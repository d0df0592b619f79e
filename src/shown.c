/*
 * shown.c
 *		The token that a write shows: in the token column, where this very
 *		statement sets it, or as the transaction has presented it.  Two that
 *		differ are refused.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "commands/trigger.h"

#include "check.h"
#include "fencecache.h"
#include "lockfence.h"
#include "refuse.h"
#include "shown.h"
#include "stats.h"
#include "visible.h"
#include "xact.h"

/*
 * The token where its column is the tuple's last, as attach() adds it: a value of
 * fixed length ends where the tuple does, so that none before it has to be walked
 * over.  False where it is elsewhere, or null.
 */
static inline bool
read_last(HeapTuple tuple, AttrNumber attno, FenceToken *token)
{
	HeapTupleHeader header = tuple->t_data;

	if (HeapTupleHeaderGetNatts(header) != attno ||
		(HeapTupleHasNulls(tuple) && att_isnull(attno - 1, header->t_bits)))
		return false;
	memcpy(token, (char *) header + tuple->t_len - sizeof(*token), sizeof(*token));
	return true;
}

/* The token in a row; 0 where there is none. */
FenceToken
lockfence_token_in(const RowGuard *guard, HeapTuple tuple)
{
	AttrNumber	attno = guard->fence->token_attno;
	bool		isnull = false;
	FenceToken	token;

	if (attno == 0)
		return 0;
	if (!read_last(tuple, attno, &token))
		token = DatumGetInt64(heap_getattr(tuple, attno, RelationGetDescr(guard->rel),
										   &isnull));
	return isnull ? 0 : Max(token, 0);
}

/* The token in the row before the write. */
FenceToken
lockfence_old_token(const RowGuard *guard)
{
	return guard->old == NULL ? 0 : lockfence_token_in(guard, guard->trigger->tg_trigtuple);
}

/*
 * What this statement puts into the token column: of a row that moves to another
 * partition, what the UPDATE did.  0 and null where it is no such thing.
 */
FenceToken
lockfence_set_token(const RowGuard *guard, bool *isnull)
{
	if (!guard->is_half)
		return DatumGetInt64(slot_getattr(guard->new, guard->fence->token_attno, isnull));
	*isnull = guard->move.shown == 0;
	return guard->move.shown;
}

/* Does this statement set the token column, for the guard to take as proof? */
bool
lockfence_column_is_set(const RowGuard *guard)
{
	AttrNumber	attno = guard->fence->token_attno;

	if (attno == 0 || guard->fence->presented_only || guard->new == NULL)
		return false;
	if (guard->is_half)
		return guard->move.shown != 0;
	if (guard->old == NULL)
		return !slot_attisnull(guard->new, attno);
	return bms_is_member(attno - FirstLowInvalidHeapAttributeNumber,
						 guard->trigger->tg_updatedcols);
}

/* What is presented for a write to the resource, or to a row of the table (NULL). */
ShownTokens
lockfence_presented_tokens(Relation rel, const char *resource)
{
	const HeldToken *held = resource ? lockfence_held_token(resource) : NULL;
	const CallToken *call = lockfence_call_token(rel);

	return (ShownTokens) {
		.named = held ? held->token : 0,
		.ambient = lockfence_ambient_token(),
		.given = call ? call->token : 0,
		.is_settled = call && call->refused
	};
}

/* What the write of a row shows. */
ShownTokens
lockfence_row_tokens(const RowGuard *guard, const char *resource)
{
	ShownTokens shown = lockfence_presented_tokens(guard->rel, resource);

	if (lockfence_column_is_set(guard))
	{
		shown.column = lockfence_set_token(guard, &shown.is_null);
		shown.is_invalid = shown.is_null || shown.column <= 0;
	}
	return shown;
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
 * The token of a write; 0: it shows none.  False where it was refused, on an
 * advisory fence.
 */
bool
lockfence_choose_token(const FencedWrite *write, const ShownTokens *shown, FenceToken *token)
{
	FenceToken	presented = shown->named ? shown->named : shown->ambient;

	if (shown->is_invalid)
	{
		lockfence_refuse_invalid(write, shown->is_null, shown->is_null ? 0 : shown->column);
		return false;
	}
	if (!agree(write, shown->named, "The token presented for it",
			   shown->ambient, "the transaction's ambient token") ||
		!agree(write, shown->given, "The token given",
			   presented, "the token that the transaction has presented"))
		return false;
	presented = presented ? presented : shown->given;
	if (!agree(write, shown->column, "The token in the column",
			   presented, "the token that the transaction has presented"))
		return false;
	*token = shown->column ? shown->column : presented ? presented : shown->carried;
	return true;
}

/* What a client should do to show a token. */
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

/* A write without a token: refuse it, where the fence says so. */
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
