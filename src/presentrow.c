/*
 * presentrow.c
 *		present(target, key, token): a token for one row of a row fence.
 *
 * The row is locked to the end of the transaction, which waits for the transaction that
 * has written or locked it.  A token above the mark is written into the row, by an
 * UPDATE of the caller; an equal one writes nothing.  All of it takes the privileges of
 * that UPDATE, and SELECT on the token, since its mark is returned.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"

#include "advisory.h"
#include "check.h"
#include "fence.h"
#include "fencecache.h"
#include "guarded.h"
#include "keyrow.h"
#include "lockwait.h"
#include "presented.h"
#include "refuse.h"
#include "rowhold.h"
#include "rowmark.h"
#include "settings.h"
#include "stats.h"
#include "token.h"
#include "validator.h"

/* The question to the fence, and its answer. */
typedef struct RowQuestion
{
	FenceCheck	check;
	bool		accepted;
} RowQuestion;

PG_FUNCTION_INFO_V1(lockfence_present_row);

/* The caller must be able to take the row over by an UPDATE, and to read its mark. */
static void
require_privileges(const RowCall *call)
{
	GivenColumn token = {.attno = call->fence->token_attno};

	lockfence_require_column_privileges(call->target, ACL_SELECT, 1, &token);
	lockfence_require_column_privileges(call->target, ACL_SELECT, call->nkeys, call->keys);
	lockfence_require_column_privileges(call->target, ACL_UPDATE, 1, &token);
}

/* Compare the token with the mark in the row. */
static void
ask(void *arg)
{
	RowQuestion *question = (RowQuestion *) arg;
	PresentedTokens tokens = {.given = question->check.token};
	FenceToken	previous;

	question->accepted = lockfence_admit(&question->check, &tokens, &previous) != 0;
}

/* May the token write to the row?  It is not written here. */
static bool
passes(const RowCall *call, FenceToken mark)
{
	const Fence *fence = lockfence_require_row_fence(call->holder);
	RowQuestion question = {.check = lockfence_fence_check(fence, call->holder, NULL)};

	question.check.write.row = call->row;
	question.check.token = call->token;
	question.check.stored = mark;
	question.check.only_compares = true;
	question.check.own_row = TransactionIdIsCurrentTransactionId(lockfence_row_writer(call->row));
	return lockfence_decide(call->holder, fence, ask, &question) && question.accepted;
}

/* The row's header, as it is now; the parts of it mean something only together. */
static void
read_header(TupleTableSlot *row, HeapTupleHeaderData *header)
{
	BufferHeapTupleTableSlot *slot = (BufferHeapTupleTableSlot *) row;

	LockBuffer(slot->buffer, BUFFER_LOCK_SHARE);
	*header = *slot->base.tuple->t_data;
	LockBuffer(slot->buffer, BUFFER_LOCK_UNLOCK);
}

/* The token in the version of the row that the transaction has written; 0: it has none, or is gone. */
static FenceToken
pending_token(Relation holder, ItemPointer tid, TransactionId writer)
{
	TupleTableSlot *row = table_slot_create(holder, NULL);
	FenceToken	token = 0;

	if (table_tuple_fetch_row_version(holder, tid, SnapshotAny, row) &&
		lockfence_row_writer(row) == writer)
		token = lockfence_stored_token(lockfence_require_row_fence(holder), row);
	ExecDropSingleTupleTableSlot(row);
	return token;
}

/* The transaction that has written the next version of the row, by a lower token; invalid: there is none. */
static TransactionId
stale_writer(const RowCall *call)
{
	HeapTupleHeaderData header;
	TransactionId writer;
	FenceToken	pending;

	if (!TTS_IS_BUFFERTUPLE(call->row))
		return InvalidTransactionId;
	read_header(call->row, &header);
	if ((header.t_infomask & HEAP_XMAX_INVALID) || HEAP_XMAX_IS_LOCKED_ONLY(header.t_infomask) ||
		HeapTupleHeaderIndicatesMovedPartitions(&header) ||
		ItemPointerEquals(&header.t_ctid, &call->row->tts_tid))
		return InvalidTransactionId;
	writer = HeapTupleHeaderGetUpdateXid(&header);
	if (!TransactionIdIsValid(writer) || TransactionIdIsCurrentTransactionId(writer) ||
		!TransactionIdIsInProgress(writer))
		return InvalidTransactionId;
	pending = pending_token(call->holder, &header.t_ctid, writer);
	return pending != 0 && lockfence_compare(call->token, pending) == HIGHER ? writer : InvalidTransactionId;
}

/* Would the fence let the token raise the mark in the row?  It is refused here if not. */
static bool
may_take_over(const RowCall *call)
{
	FencedWrite write = {.rel = call->holder,.row = call->row};

	return passes(call, lockfence_stored_token(lockfence_require_row_fence(call->holder), call->row)) &&
		lockfence_vouch_for(&write, call->token);
}

/*
 * With lockfence.preempt on, end the transaction that keeps the row from being locked, if
 * it has written the row by a lower token.  Of one that has only locked the row it is not
 * known which token it would write by.  A token that is refused ends none, and neither does
 * an advisory fence.
 */
static void
settle_writer(RowCall *call)
{
	FenceCheck	check = {.token = call->token};
	TransactionId writer;

	if (!lockfence_preempt || !lockfence_find_row(call, false))
		return;
	check.write.rel = call->holder;
	check.write.resource = lockfence_row_name(call->holder, call->row);
	writer = lockfence_is_advisory(lockfence_require_row_fence(call->holder)) ? InvalidTransactionId : stale_writer(call);
	if (TransactionIdIsValid(writer) && may_take_over(call))
		lockfence_settle_stale(writer, &check);
	lockfence_drop_row(call->row, call->holder);
	call->row = NULL;
}

/*
 * Find the row, and lock it.  Where row security applies to the caller, a lock that the
 * caller takes comes first: to a caller from whom the row is hidden there is none.
 */
static void
lock_row(RowCall *call)
{
	bool		is_seen = true;

	if (check_enable_rls(RelationGetRelid(call->target), InvalidOid, true) == RLS_ENABLED)
	{
		lockfence_convert_columns(call->target, call->keys, call->nkeys);
		SPI_connect();
		lockfence_query_key(call->target, "", call->keys, call->nkeys, true);
		is_seen = SPI_processed > 0;
		SPI_finish();
	}
	else
		settle_writer(call);
	if (!is_seen || !lockfence_find_row(call, true))
		lockfence_refuse_no_row(call);
}

/* The columns of the unique key, as the table that holds the row numbers them. */
static Bitmapset *
key_columns(const RowCall *call)
{
	int			nunique;
	const GivenColumn *unique = lockfence_unique_key(call->target, call->keys, call->nkeys, &nunique);
	Bitmapset  *columns = NULL;

	for (int i = 0; i < nunique; i++)
		columns = bms_add_member(columns, get_attnum(RelationGetRelid(call->holder), unique[i].name));
	return columns;
}

/* Write the token into the row. */
static void
take_over(RowCall *call)
{
	Form_pg_attribute column = TupleDescAttr(RelationGetDescr(call->target), call->fence->token_attno - 1);
	GivenColumn change = {
		.attno = column->attnum,.name = NameStr(column->attname),.type = column->atttypid
	};

	change.given.type = jbvString;
	change.given.val.string.val = psprintf(INT64_FORMAT, call->token);
	change.given.val.string.len = strlen(change.given.val.string.val);
	if (lockfence_guarded_set(call->target, call->fence, call->keys, call->nkeys, &change, call->token) == 0)
		lockfence_refuse_lost_mark(call->holder, "Let the trigger return the row, or disable it.");
}

/* present(target, key, token) -> the previous mark, or null */
Datum
lockfence_present_row(PG_FUNCTION_ARGS)
{
	RowCall		call;
	FenceToken	mark;

	if (!PG_ARGISNULL(0))
		lockfence_require_any_privilege(PG_GETARG_OID(0), ACL_UPDATE);
	call = lockfence_begin_row_call(fcinfo, RowExclusiveLock);
	require_privileges(&call);
	lock_row(&call);
	mark = lockfence_stored_token(lockfence_require_row_fence(call.holder), call.row);
	lockfence_hold_row(call.holder, call.row, key_columns(&call),
					   lockfence_row_name(call.holder, call.row), call.token);
	if (passes(&call, mark))
	{
		if (lockfence_compare(call.token, mark) == HIGHER)
			take_over(&call);
		else
			lockfence_count(call.holder, LOCKFENCE_ACCEPTED);
	}
	lockfence_end_row_call(&call);
	if (mark == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(mark);
}
