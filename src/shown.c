/*
 * shown.c
 *		The token that a write shows: in the token column, where this very
 *		statement sets it, or as the transaction has presented it.  Two that
 *		differ are refused.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "commands/trigger.h"
#include "lockfence.h"

/* The token in a row; 0 where there is none. */
FenceToken
lockfence_stored_token(const RowGuard *guard, TupleTableSlot *slot)
{
	bool		isnull;
	Datum		value;

	if (guard->fence->token_attno == 0 || slot == NULL)
		return 0;
	value = slot_getattr(slot, guard->fence->token_attno, &isnull);
	return isnull ? 0 : Max(DatumGetInt64(value), 0);
}

/* Does this statement set the token column, for the guard to take as proof? */
bool
lockfence_column_is_set(const RowGuard *guard)
{
	AttrNumber	attno = guard->fence->token_attno;

	if (attno == 0 || guard->fence->presented_only || guard->new == NULL)
		return false;
	if (guard->old == NULL)
		return !slot_attisnull(guard->new, attno);
	return bms_is_member(attno - FirstLowInvalidHeapAttributeNumber,
						 guard->trigger->tg_updatedcols);
}

/* The token that the transaction has presented for the write; 0: none. */
bool
lockfence_presented_token(const FencedWrite *write, FenceToken *token)
{
	const HeldToken *held = write->resource ? lockfence_held_token(write->resource) : NULL;
	FenceToken	ambient = lockfence_ambient_token();

	*token = held ? held->token : ambient;
	if (held != NULL && ambient != 0 && held->token != ambient)
	{
		lockfence_refuse_conflicting(write, held->token, "The token presented for it",
									 ambient, "the transaction's ambient token");
		return false;
	}
	return true;
}

/* The token that the statement puts into the token column; 0: none. */
static bool
column_token(const RowGuard *guard, const FencedWrite *write, FenceToken *token)
{
	bool		isnull;
	Datum		value;

	*token = 0;
	if (!lockfence_column_is_set(guard))
		return true;
	value = slot_getattr(guard->new, guard->fence->token_attno, &isnull);
	if (!isnull && DatumGetInt64(value) > 0)
	{
		*token = DatumGetInt64(value);
		return true;
	}
	lockfence_refuse_invalid(write, isnull, isnull ? 0 : DatumGetInt64(value));
	return false;
}

/*
 * The token of a row's write; 0: it shows none.  False where it was refused,
 * on an advisory fence.
 */
bool
lockfence_choose_token(const RowGuard *guard, const FencedWrite *write, FenceToken *token)
{
	FenceToken	column;
	FenceToken	presented;

	if (!lockfence_pass_gate(write) ||
		!column_token(guard, write, &column) || !lockfence_presented_token(write, &presented))
		return false;
	if (column != 0 && presented != 0 && column != presented)
	{
		lockfence_refuse_conflicting(write, column, "The token in the column",
									 presented, "the token that the transaction has presented");
		return false;
	}
	*token = column != 0 ? column : presented;
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
lockfence_settle_missing(const Fence *fence, const FencedWrite *write, bool sets_columns)
{
	if (fence->missing_allowed)
		lockfence_count(write->rel, LOCKFENCE_UNPROTECTED);
	else
		lockfence_refuse_missing(write, missing_hint(fence, sets_columns));
}
