/*
 * guard.c
 *		The trigger that stands between the write of a row and a fenced table.
 *
 * The entry point checks how it was called and hands over to one function per
 * event, which collects what the decision needs; fence.c decides.  The accepted
 * token is stored in the row.
 *
 * A row whose values name no resource could not be written through the fence, so
 * it is older than the fence.  No lock protects it: it may be deleted, or updated
 * into a row that has a resource.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "replication/logicalworker.h"

#include "advisory.h"
#include "bypass.h"
#include "check.h"
#include "fence.h"
#include "fencecache.h"
#include "fencedef.h"
#include "granted.h"
#include "guardcall.h"
#include "lockfence.h"
#include "move.h"
#include "presented.h"
#include "rowhold.h"
#include "rowmark.h"
#include "rowrun.h"
#include "rowtokens.h"
#include "stats.h"
#include "template.h"
#include "timeline.h"
#include "token.h"
#include "xact.h"

PG_FUNCTION_INFO_V1(lockfence_guard_row);

/* The command that writes the row; the halves of a move are an UPDATE's. */
static WriteCommand
row_command(const RowGuard *guard)
{
	if (guard->is_half || (guard->old != NULL && guard->new != NULL))
		return WRITE_UPDATE;
	return guard->old == NULL ? WRITE_INSERT : WRITE_DELETE;
}

/* Count a row that was accepted. */
static inline void
count_accepted(Relation rel)
{
	lockfence_accepted_rows++;
	lockfence_count(rel, LOCKFENCE_ACCEPTED);
}

/* Decide on the write of a row; 0: it goes on unprotected. */
static FenceToken
admit_row(const RowGuard *guard, FenceCheck *check, const PresentedTokens *tokens)
{
	FenceToken	previous;
	FenceToken	accepted;

	check->sets_columns = guard->new != NULL;
	check->command = row_command(guard);
	accepted = lockfence_admit(check, tokens, &previous);
	if (accepted != 0)
		count_accepted(guard->rel);
	return accepted;
}

/* Check the row's token against its named resource; was_of_it: OLD belonged to it too. */
static FenceToken
check_named(const RowGuard *guard, const char *resource, bool was_of_it)
{
	PresentedTokens tokens = lockfence_row_tokens(guard, resource);
	FenceCheck	check = lockfence_fence_check(guard->fence, guard->rel, resource);

	check.write.named_by = guard->fence;
	if (was_of_it)
		check.stored = lockfence_old_token(guard);
	return admit_row(guard, &check, &tokens);
}

/* Does one value alone name the row's resource?  Returns that value. */
static bool
key_value(const RowGuard *guard, TupleTableSlot *slot, Datum *value)
{
	bool		isnull;

	*value = slot_getattr(slot, guard->fence->key_attno, &isnull);
	return !isnull;
}

/*
 * What decides on the row, in the simple case: the one value that names its
 * resource, the same before and after, and the token in its column (0: not set).
 */
static bool
simple_question(const RowGuard *guard, Datum *value, FenceToken *set)
{
	Datum		before;
	bool		isnull;

	if (guard->fence->key_attno == 0 || guard->fence->single_use)
		return false;
	if (!key_value(guard, guard->new ? guard->new : guard->old, value))
		return false;
	if (guard->old != NULL && (!key_value(guard, guard->old, &before) || before != *value))
		return false;
	*set = 0;
	if (!lockfence_column_is_set(guard))
		return true;
	*set = lockfence_set_token(guard, &isnull);
	return !isnull && *set > 0;
}

/* Was the version of the row that the guard sees written by this transaction? */
static bool
old_row_is_own(const RowGuard *guard)
{
	HeapTuple	tuple = guard->trigger->tg_trigtuple;

	return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
}

/*
 * Check the token against the mark in the row.  A row that moves to another
 * partition brings along its mark and the token that was accepted there; a row
 * that is inserted has no holder yet.
 */
static FenceToken
check_row(const RowGuard *guard)
{
	bool		has_mark = guard->old != NULL || guard->is_half;
	PresentedTokens tokens = lockfence_row_tokens(guard, NULL);
	FenceCheck	check = lockfence_fence_check(guard->fence, guard->rel, NULL);

	check.write.row = guard->old ? guard->old : guard->new;
	check.needs_none = !has_mark;
	if (guard->old != NULL)
		check.stored = lockfence_old_token(guard);
	else if (guard->is_half)
		check.stored = lockfence_mark_of_move(guard);
	if (guard->fence->single_use && has_mark)
		check.own_row = guard->old ? old_row_is_own(guard) : guard->move.is_new && lockfence_shares_column(guard);
	if (guard->is_half && guard->move.by_row)
		tokens.carried = guard->move.accepted;
	if (lockfence_session_has_grant())
		lockfence_present_granted_lock(&check, tokens.column ? tokens.column :
									   tokens.ambient ? tokens.ambient : tokens.given);
	return admit_row(guard, &check, &tokens);
}

/* The row with this token in its token column; 0 stores null. */
static HeapTuple
store_token(const RowGuard *guard, HeapTuple tuple, FenceToken token)
{
	int			attno = guard->fence->token_attno;
	Datum		value = Int64GetDatum(token);
	bool		isnull = token == 0;
	bool		was_null;
	Datum		was = slot_getattr(guard->new, attno, &was_null);

	if (was_null ? isnull : !isnull && DatumGetInt64(was) == token)
		return tuple;
	return heap_modify_tuple_by_cols(tuple, RelationGetDescr(guard->rel), 1,
									 &attno, &value, &isnull);
}

/*
 * The row to write.  An accepted token is stored.  A write that goes on without
 * one leaves the stored token as it was: a token that was not accepted must not
 * become a mark, and neither must a token of another resource.  A column of the
 * application's is its own.
 */
static HeapTuple
row_to_write(const RowGuard *guard, HeapTuple tuple, FenceToken accepted)
{
	if (guard->fence->token_attno == 0 || guard->fence->reads_column || guard->new == NULL)
		return tuple;
	if (accepted == 0 && !guard->changes_hands)
		accepted = lockfence_old_token(guard);
	return store_token(guard, tuple, accepted);
}

/*
 * Check both resources of a row that moves between them, in the order of
 * their names, so that two such moves cannot wait for each other.
 */
static FenceToken
check_move(RowGuard *guard, const char *from, const char *to)
{
	FenceToken	accepted;

	guard->changes_hands = strcmp(from, to) != 0;
	if (strcmp(from, to) < 0)
	{
		(void) check_named(guard, from, true);
		return check_named(guard, to, false);
	}
	accepted = check_named(guard, to, false);
	(void) check_named(guard, from, true);
	return accepted;
}

/* Check the resource of an UPDATE, or both; unmoved: they are known to be the same. */
static FenceToken
check_update(RowGuard *guard, bool unmoved)
{
	const Fence *fence = guard->fence;
	const char *from;
	const char *to;

	to = lockfence_slot_resource(fence, guard->rel, guard->new);
	if (unmoved || lockfence_same_resource(fence, guard->rel, guard->old, guard->new))
		return check_named(guard, to, true);
	from = lockfence_find_resource(fence, guard->old);
	if (from != NULL)
		return check_move(guard, from, to);
	guard->changes_hands = true;
	return check_named(guard, to, false);
}

/* Check the DELETE of a row, which may belong to no resource. */
static FenceToken
check_delete(const RowGuard *guard)
{
	const char *resource = lockfence_find_resource(guard->fence, guard->old);
	FencedWrite write = {
		.rel = guard->rel,
		.resource = guard->fence->resource,
		.advisory = lockfence_is_advisory(guard->fence)
	};

	if (resource != NULL)
		return check_named(guard, resource, true);
	lockfence_pass_unprotected(guard->fence, &write);
	return 0;
}

/* Check an INSERT, UPDATE or DELETE of a row with a named resource. */
static FenceToken
check_resources(RowGuard *guard, bool unmoved)
{
	if (guard->old == NULL)
		return check_named(guard, lockfence_slot_resource(guard->fence, guard->rel, guard->new),
						   false);
	return guard->new != NULL ? check_update(guard, unmoved) : check_delete(guard);
}

/* Check a row's write; 0: it goes on unprotected. */
static FenceToken
check_write(RowGuard *guard)
{
	FenceToken	accepted;
	FenceToken	set = 0;
	Datum		value = 0;
	bool		simple;

	if (guard->fence->resource == NULL)
		return check_row(guard);
	simple = simple_question(guard, &value, &set);
	if (simple && lockfence_gate_is_open &&
		lockfence_run_goes_on(guard->fence, value, set, &accepted) &&
		lockfence_compare(accepted, lockfence_old_token(guard)) != STALE)
	{
		count_accepted(guard->rel);
		return accepted;
	}
	accepted = check_resources(guard, simple);
	if (simple && accepted != 0)
		lockfence_run_begin(guard->fence, value, set, accepted);
	return accepted;
}

static HeapTuple
guard_insert(RowGuard *guard)
{
	HeapTuple	tuple = guard->trigger->tg_trigtuple;
	FenceToken	accepted;

	guard->is_half = lockfence_row_moves_in(RelationGetRelid(guard->rel), &guard->move);
	if (guard->is_half)
		guard->move.set_token = lockfence_token_of_move(guard);
	accepted = check_write(guard);
	if (guard->is_half && guard->move.hold != NULL && guard->fence->resource == NULL)
		lockfence_follow_move(guard->move.hold, guard->rel, guard->new);
	/* a row that brings its mark along is written as its UPDATE left it */
	if (guard->is_half && accepted == 0)
		return tuple;
	return row_to_write(guard, tuple, accepted);
}

/*
 * What the halves of a move must know of their UPDATE, including the token that
 * it sets, whether or not this fence accepts the column as proof.
 */
static RowMove
move_of_update(const RowGuard *guard, FenceToken accepted, const RowHold *hold)
{
	const Fence *fence = guard->fence;
	const Bitmapset *set = guard->trigger->tg_updatedcols;

	return (RowMove) {
		.from = RelationGetRelid(guard->rel),
		.column = fence->token_column,
		.set_token = lockfence_sets_column(set, fence->token_attno) ?
			lockfence_token_in(guard, guard->trigger->tg_newtuple) : 0,
		.accepted = accepted,
		.by_row = fence->resource == NULL,
		.is_new = lockfence_compare(accepted, lockfence_old_token(guard)) == HIGHER || old_row_is_own(guard),
		.set = set,
		.hold = hold
	};
}

static HeapTuple
guard_update(RowGuard *guard)
{
	FenceToken	accepted = check_write(guard);
	const RowHold *hold = unlikely(lockfence_holds_rows) && guard->fence->resource == NULL ?
		lockfence_follow_row(guard->rel, guard->old, guard->new) : NULL;

	if (guard->rel->rd_rel->relispartition)
		lockfence_remember_update(&guard->trigger->tg_trigtuple->t_self,
								  move_of_update(guard, accepted, hold));
	return row_to_write(guard, guard->trigger->tg_newtuple, accepted);
}

static HeapTuple
guard_delete(RowGuard *guard)
{
	HeapTuple	tuple = guard->trigger->tg_trigtuple;

	guard->is_half = lockfence_row_moves_out(RelationGetRelid(guard->rel), tuple, &guard->move);
	if (!guard->is_half || guard->move.accepted != 0)
		(void) check_write(guard);
	return tuple;
}

/*
 * A row that logical replication brings: the publisher has decided.  Raise the
 * mark to the row's token, so that this side refuses stale tokens too.
 */
static HeapTuple
follow_publisher(const RowGuard *guard, HeapTuple tuple)
{
	FenceToken	token = guard->new ? lockfence_token_in(guard, tuple) : 0;
	FenceToken	before;
	char	   *resource;

	if (token == 0 || guard->fence->resource == NULL)
		return tuple;
	resource = lockfence_find_resource(guard->fence, guard->new);
	if (resource != NULL)
		(void) lockfence_raise_mark(resource, token, BY_REPLICATION, &before);
	return tuple;
}

/* Decide on a row; guard->written becomes the row to write. */
static void
decide_row(void *arg)
{
	RowGuard   *guard = (RowGuard *) arg;

	/* deform all columns that the fence reads in one call, since each call costs */
	if (guard->new != NULL)
		slot_getsomeattrs(guard->new, guard->fence->last_attno);
	if (unlikely(lockfence_sets_row_mark) && lockfence_admits_row_mark(guard))
		return;

	if (IsLogicalWorker())
		guard->written = follow_publisher(guard, guard->written);
	else if (guard->old == NULL)
		guard->written = guard_insert(guard);
	else if (guard->new == NULL)
		guard->written = guard_delete(guard);
	else
		guard->written = guard_update(guard);
}

/* BEFORE INSERT OR UPDATE OR DELETE FOR EACH ROW */
Datum
lockfence_guard_row(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	RowGuard	guard = {.trigger = trigger};

	lockfence_require_guard(fcinfo, true);
	guard.rel = trigger->tg_relation;
	guard.written = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newtuple : trigger->tg_trigtuple;
	if (lockfence_is_bypassed(guard.rel))
		return PointerGetDatum(guard.written);

	guard.fence = lockfence_trigger_fence(fcinfo);
	if (!TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		guard.old = trigger->tg_trigslot;
	if (!TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		guard.new = guard.old ? trigger->tg_newslot : trigger->tg_trigslot;
	if (!lockfence_decide(guard.rel, guard.fence, decide_row, &guard) && guard.fence->fault == NULL)
		guard.written = row_to_write(&guard, guard.written, 0);
	return PointerGetDatum(guard.written);
}
