/*
 * rowtokens.c
 *		The tokens in a row that is written: a value that this statement sets in the
 *		token column is presented, a value that was there before is not.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "commands/trigger.h"
#include "utils/lsyscache.h"

#include "lockfence.h"
#include "move.h"
#include "presented.h"
#include "rowhold.h"
#include "rowtokens.h"

/*
 * The token where its column is the tuple's last, as attach() adds it: a value of
 * fixed length ends where the tuple does, so that none before it has to be walked
 * over.  False where it is elsewhere, null or of another width (attno 0).
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

/* The token in a row; 0: there is none. */
FenceToken
lockfence_token_in(const RowGuard *guard, HeapTuple tuple)
{
	AttrNumber	attno = guard->fence->token_attno;
	bool		isnull = false;
	FenceToken	token;

	if (attno == 0)
		return 0;
	if (!read_last(tuple, guard->fence->wide_attno, &token))
		token = lockfence_column_token(guard->fence,
									   heap_getattr(tuple, attno, RelationGetDescr(guard->rel),
													&isnull));
	return isnull ? 0 : Max(token, 0);
}

/* The same, of a row in a slot. */
FenceToken
lockfence_stored_token(const Fence *fence, TupleTableSlot *row)
{
	bool		isnull;
	Datum		token;

	if (fence->token_attno == 0)
		return 0;
	token = slot_getattr(row, fence->token_attno, &isnull);
	return isnull ? 0 : Max(lockfence_column_token(fence, token), 0);
}

/* The token in the row before the write. */
FenceToken
lockfence_old_token(const RowGuard *guard)
{
	return guard->old == NULL ? 0 : lockfence_token_in(guard, guard->trigger->tg_trigtuple);
}

/*
 * What this statement puts into the token column: of a row that moves to another
 * partition, what the UPDATE put there.  0 and null if it put nothing there.
 */
FenceToken
lockfence_set_token(const RowGuard *guard, bool *isnull)
{
	if (!guard->is_half)
		return lockfence_column_token(guard->fence,
									  slot_getattr(guard->new, guard->fence->token_attno, isnull));
	*isnull = guard->move.set_token == 0;
	return guard->move.set_token;
}

/* Is there a number in a column of the application's?  0 is none. */
static bool
has_number(const RowGuard *guard)
{
	bool		isnull;
	FenceToken	number = lockfence_set_token(guard, &isnull);

	return !isnull && number != 0;
}

/* Does this statement set the token column, so that its value counts as presented? */
bool
lockfence_column_is_set(const RowGuard *guard)
{
	AttrNumber	attno = guard->fence->token_attno;

	if (attno == 0 || guard->fence->presented_only || guard->new == NULL)
		return false;
	if (guard->is_half)
		return guard->move.set_token != 0;
	if (guard->fence->reads_column && !has_number(guard))
		return false;
	if (guard->old == NULL)
		return !slot_attisnull(guard->new, attno);
	return bms_is_member(attno - FirstLowInvalidHeapAttributeNumber,
						 guard->trigger->tg_updatedcols);
}

/* What the write of a row presents. */
PresentedTokens
lockfence_row_tokens(const RowGuard *guard, const char *resource)
{
	PresentedTokens tokens = lockfence_presented_tokens(guard->rel, resource);

	if (resource == NULL)
		tokens.named = lockfence_row_hold(guard->rel, guard->old);
	if (lockfence_column_is_set(guard))
	{
		tokens.column = lockfence_set_token(guard, &tokens.is_null);
		tokens.is_invalid = tokens.is_null || tokens.column <= 0;
	}
	return tokens;
}

/* Is a column, by its number in the table, among those that an UPDATE sets? */
bool
lockfence_sets_column(const Bitmapset *columns, AttrNumber attno)
{
	return attno > 0 && bms_is_member(attno - FirstLowInvalidHeapAttributeNumber, columns);
}

/* Do both fences of a row that moves keep their tokens in the same column? */
bool
lockfence_shares_column(const RowGuard *guard)
{
	return guard->move.column != NULL && guard->fence->token_column != NULL &&
		strcmp(guard->move.column, guard->fence->token_column) == 0;
}

/*
 * The mark that a row brings along when it moves in: as the fence of the other
 * partition left it or, if that fence has another column, as it was before the
 * UPDATE.
 */
FenceToken
lockfence_mark_of_move(const RowGuard *guard)
{
	const RowMove *move = &guard->move;
	AttrNumber	attno = get_attnum(move->from, guard->fence->token_column);
	FenceToken	mark;
	Relation	from;
	bool		isnull;

	if (lockfence_shares_column(guard) || !lockfence_sets_column(move->set, attno))
		return lockfence_token_in(guard, guard->trigger->tg_trigtuple);
	from = table_open(move->from, NoLock);
	mark = DatumGetInt64(heap_getattr(move->old, attno, RelationGetDescr(from), &isnull));
	table_close(from, NoLock);
	return isnull ? 0 : Max(mark, 0);
}

/*
 * The token that the UPDATE of a row which moves in has put into this fence's
 * token column; 0: none.  If the fence of the other partition has the same
 * column, it may have stored another token there.
 */
FenceToken
lockfence_token_of_move(const RowGuard *guard)
{
	const char *column = guard->fence->token_column;

	if (lockfence_shares_column(guard))
		return guard->move.set_token;
	return column != NULL && lockfence_sets_column(guard->move.set, get_attnum(guard->move.from, column)) ?
		lockfence_token_in(guard, guard->trigger->tg_trigtuple) : 0;
}
