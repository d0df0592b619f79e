/*
 * guard.c
 *		The triggers that stand between a write and a fenced table.
 *
 * Each entry checks how it was called and hands over to one function an
 * event.  The token that is accepted is stored in the row.
 *
 * A row fence keeps the mark in the row.  The row is locked before its guard
 * is called and OLD is its newest version, so the comparison needs no other
 * lock.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/trigger.h"
#include "lockfence.h"
#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(lockfence_guard_row);
PG_FUNCTION_INFO_V1(lockfence_guard_statement);
PG_FUNCTION_INFO_V1(lockfence_guard_truncate);

/* Raise an error unless called as a BEFORE trigger of the given level. */
static void
require_trigger(FunctionCallInfo fcinfo, bool row)
{
	TriggerEvent event;

	if (CALLED_AS_TRIGGER(fcinfo))
	{
		event = ((TriggerData *) fcinfo->context)->tg_event;
		if (TRIGGER_FIRED_BEFORE(event) && !TRIGGER_FIRED_FOR_ROW(event) == !row)
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg("a fence's guard must be fired BEFORE, FOR EACH %s",
					row ? "ROW" : "STATEMENT"),
			 errhint("Use lockfence.attach() to fence a table.")));
}

/* Does an administrator let this write pass?  Logged once a transaction. */
static bool
is_bypassed(Relation rel)
{
	if (!lockfence_bypass)
		return false;
	lockfence_count(rel, LOCKFENCE_BYPASSED);
	if (lockfence_first_bypass(RelationGetRelid(rel)))
		ereport(LOG,
				(errmsg("fence of table \"%s\" is bypassed",
						lockfence_visible(RelationGetRelationName(rel))),
				 errdetail("lockfence.bypass is on for role \"%s\".",
						   lockfence_visible(GetUserNameFromId(GetUserId(), true))),
				 errtable(rel)));
	return true;
}

/*
 * Check the row's token against its named resource, of which OLD was already or
 * not; 0: it goes unprotected.
 */
static FenceToken
check_named(const RowGuard *guard, const char *resource, bool was_of_it)
{
	const Fence *fence = guard->fence;
	FenceToken	token;
	FenceToken	previous;
	FenceCheck	check = lockfence_fence_check(fence, guard->rel, resource);

	check.earlier = was_of_it ? guard : NULL;
	if (!lockfence_choose_token(guard, &check.write, &token))
		return 0;
	if (token == 0)
	{
		lockfence_settle_missing(fence, &check.write, guard->new != NULL);
		return 0;
	}
	check.token = token;
	if (!lockfence_check_and_advance(&check, &previous))
		return 0;
	lockfence_count(guard->rel, LOCKFENCE_ACCEPTED);
	return token;
}

/* Does a row belong to its resource by one value alone?  Tells that value. */
static bool
key_value(const RowGuard *guard, TupleTableSlot *slot, Datum *value)
{
	bool		isnull;

	*value = slot_getattr(slot, guard->fence->key_attno, &isnull);
	return !isnull;
}

/*
 * What decides on the row, where that is easily told: the one value that names
 * its resource, before and after, and the token in its column (0: not set).
 */
static bool
simple_question(const RowGuard *guard, Datum *value, FenceToken *shown)
{
	Datum		before;

	if (guard->fence->key_attno == 0 || guard->fence->single_use)
		return false;
	if (!key_value(guard, guard->new ? guard->new : guard->old, value))
		return false;
	if (guard->old != NULL && (!key_value(guard, guard->old, &before) || before != *value))
		return false;
	*shown = 0;
	if (!lockfence_column_is_set(guard))
		return true;
	*shown = lockfence_stored_token(guard, guard->new);
	return *shown != 0;
}

/* Is the version of the row that the guard looks at this transaction's own? */
static bool
old_row_is_own(const RowGuard *guard)
{
	HeapTuple	tuple = guard->trigger->tg_trigtuple;

	return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
}

/* Compare the token with the mark in the row. */
static bool
compare_with_row(const RowGuard *guard, const FencedWrite *write,
				 FenceToken token, FenceToken mark)
{
	if (!lockfence_check_epoch(write, token))
		return false;
	if (token < mark)
	{
		lockfence_refuse_stale(write, token, mark, "mark");
		return false;
	}
	if (token == mark && guard->fence->single_use && !old_row_is_own(guard))
	{
		lockfence_refuse_repeated(write, token);
		return false;
	}
	if (token > mark && !lockfence_vouch_for(write, token))
		return false;
	if (token > mark)
	{
		lockfence_commit_durably();
		lockfence_count(guard->rel, LOCKFENCE_ADVANCED);
	}
	lockfence_count(guard->rel, LOCKFENCE_ACCEPTED);
	return true;
}

/* Check the token against the mark in the row; 0: it goes unprotected. */
static FenceToken
check_row(const RowGuard *guard)
{
	FenceToken	mark = lockfence_stored_token(guard, guard->old);
	FenceToken	token;
	FencedWrite write = {
		.rel = guard->rel,
		.row = guard->old ? guard->old : guard->new,
		.advisory = guard->fence->advisory
	};

	if (!lockfence_choose_token(guard, &write, &token))
		return 0;
	if (token == 0)
		token = guard->moved;
	if (token == 0)
	{
		/* a new row belongs to nobody yet */
		if (guard->old != NULL)
			lockfence_settle_missing(guard->fence, &write, guard->new != NULL);
		return 0;
	}
	return compare_with_row(guard, &write, token, mark) ? token : 0;
}

/* The row with this token in its token column; 0: null. */
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
 * one leaves the token as it was: what was no proof must not stand for a mark.
 */
static HeapTuple
row_to_write(const RowGuard *guard, HeapTuple tuple, FenceToken accepted)
{
	if (guard->fence->token_attno == 0)
		return tuple;
	return store_token(guard, tuple,
					   accepted != 0 ? accepted : lockfence_stored_token(guard, guard->old));
}

/*
 * Check both resources of a row that moves between them, in the order of
 * their names, so that two such moves cannot wait for each other.
 */
static FenceToken
check_move(const RowGuard *guard, const char *from, const char *to)
{
	FenceToken	accepted;

	if (strcmp(from, to) < 0)
	{
		(void) check_named(guard, from, true);
		return check_named(guard, to, false);
	}
	accepted = check_named(guard, to, false);
	(void) check_named(guard, from, true);
	return accepted;
}

/* Check the resource of an UPDATE, or both; unmoved: they are known to be one. */
static FenceToken
check_update(const RowGuard *guard, bool unmoved)
{
	const Fence *fence = guard->fence;
	const char *to;

	to = lockfence_slot_resource(fence, guard->rel, guard->new);
	if (unmoved || lockfence_same_resource(fence, guard->rel, guard->old, guard->new))
		return check_named(guard, to, true);
	/* a row from before the fence, which belonged to no resource yet */
	if (!lockfence_slot_has_resource(fence, guard->old))
		return check_named(guard, to, false);
	return check_move(guard, lockfence_slot_resource(fence, guard->rel, guard->old), to);
}

/* Check an INSERT, UPDATE or DELETE of a row with a named resource. */
static FenceToken
check_resources(const RowGuard *guard, bool unmoved)
{
	const Fence *fence = guard->fence;

	if (guard->old == NULL)
		return check_named(guard, lockfence_slot_resource(fence, guard->rel, guard->new), false);
	if (guard->new != NULL)
		return check_update(guard, unmoved);
	return check_named(guard, lockfence_slot_resource(fence, guard->rel, guard->old), true);
}

/* Check a row's write; 0: it goes unprotected. */
static FenceToken
check_write(const RowGuard *guard)
{
	FenceToken	accepted;
	FenceToken	shown = 0;
	Datum		value = 0;
	bool		simple;

	if (guard->fence->resource == NULL)
		return check_row(guard);
	simple = simple_question(guard, &value, &shown);
	if (simple && lockfence_gate_is_open &&
		lockfence_streak_goes_on(guard->fence, value, shown, &accepted))
	{
		lockfence_count(guard->rel, LOCKFENCE_ACCEPTED);
		return accepted;
	}
	accepted = check_resources(guard, simple);
	if (simple && accepted != 0)
		lockfence_streak_begin(guard->fence, value, shown, accepted);
	return accepted;
}

static HeapTuple
guard_insert(const RowGuard *guard)
{
	HeapTuple	tuple = guard->trigger->tg_trigtuple;

	/* the token in the row was not put there by this statement */
	if (lockfence_row_moves_in_unprotected(RelationGetRelid(guard->rel)))
		return tuple;
	return row_to_write(guard, tuple, check_write(guard));
}

static HeapTuple
guard_update(const RowGuard *guard)
{
	FenceToken	accepted = check_write(guard);

	if (guard->rel->rd_rel->relispartition)
		lockfence_remember_row(RelationGetRelid(guard->rel),
							   &guard->trigger->tg_trigtuple->t_self, accepted);
	return row_to_write(guard, guard->trigger->tg_newtuple, accepted);
}

static HeapTuple
guard_delete(RowGuard *guard)
{
	HeapTuple	tuple = guard->trigger->tg_trigtuple;
	bool		moves = lockfence_row_moves_out(RelationGetRelid(guard->rel),
												&tuple->t_self, &guard->moved);

	if (!moves)
		guard->moved = 0;
	else if (guard->moved == 0)
		return tuple;

	(void) check_write(guard);
	return tuple;
}

/*
 * A row that logical replication brings: the publisher has decided.  Raise
 * the mark to what arrives, so that this side refuses stale tokens too.
 */
static HeapTuple
follow_publisher(const RowGuard *guard, HeapTuple tuple)
{
	FenceToken	token = lockfence_stored_token(guard, guard->new);
	FenceToken	before;

	if (token != 0 && guard->fence->resource != NULL)
		(void) lockfence_raise_mark(lockfence_slot_resource(guard->fence, guard->rel,
															guard->new),
									token, &before);
	return tuple;
}

/* BEFORE INSERT OR UPDATE OR DELETE FOR EACH ROW */
Datum
lockfence_guard_row(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	RowGuard	guard = {.trigger = trigger};
	HeapTuple	written;

	require_trigger(fcinfo, true);
	guard.rel = trigger->tg_relation;
	written = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newtuple : trigger->tg_trigtuple;
	if (is_bypassed(guard.rel))
		return PointerGetDatum(written);

	guard.fence = lockfence_trigger_fence(fcinfo);
	if (!TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		guard.old = trigger->tg_trigslot;
	if (!TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		guard.new = guard.old ? trigger->tg_newslot : trigger->tg_trigslot;
	/* all that the fence reads at once: each call costs */
	if (guard.new != NULL)
		slot_getsomeattrs(guard.new, guard.fence->last_attno);

	if (IsLogicalWorker())
		written = follow_publisher(&guard, written);
	else if (guard.old == NULL)
		written = guard_insert(&guard);
	else if (guard.new == NULL)
		written = guard_delete(&guard);
	else
		written = guard_update(&guard);
	return PointerGetDatum(written);
}

/* Check the token that was presented for a fence over the whole table. */
static void
check_constant(Relation rel, const Fence *fence)
{
	FenceToken	previous;
	FenceCheck	check = lockfence_fence_check(fence, rel,
											  lockfence_constant_resource(fence));

	if (!lockfence_pass_gate(&check.write) ||
		!lockfence_presented_token(&check.write, &check.token))
		return;
	if (check.token == 0)
		lockfence_settle_missing(fence, &check.write, false);
	else if (lockfence_check_and_advance(&check, &previous))
		lockfence_count(rel, LOCKFENCE_ACCEPTED);
}

/* BEFORE INSERT OR UPDATE OR DELETE FOR EACH STATEMENT */
Datum
lockfence_guard_statement(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	require_trigger(fcinfo, false);
	if (!is_bypassed(trigger->tg_relation) && !IsLogicalWorker())
		check_constant(trigger->tg_relation, lockfence_trigger_fence(fcinfo));
	return PointerGetDatum(NULL);
}

/* BEFORE TRUNCATE FOR EACH STATEMENT */
Datum
lockfence_guard_truncate(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Relation	rel = trigger->tg_relation;
	const Fence *fence;

	require_trigger(fcinfo, false);
	if (is_bypassed(rel) || IsLogicalWorker())
		return PointerGetDatum(NULL);
	fence = lockfence_trigger_fence(fcinfo);
	if (fence->resource != NULL && fence->constant)
		check_constant(rel, fence);
	else
	{
		FencedWrite write = {.rel = rel,.advisory = fence->advisory};

		lockfence_refuse_truncate(&write);
	}
	return PointerGetDatum(NULL);
}
