/*
 * holder.c
 *		What this transaction has presented: the ambient token, and the memo of
 *		tokens that were accepted, by resource.
 *
 * All of it lives in backend memory and ends with the transaction, also by
 * PREPARE, so that nothing passes to the next client of a pooled connection.
 *
 * Every change belongs to the subtransaction that made it: an undo log holds
 * what was there before, and an aborting subtransaction rolls its part back.
 * Its locks and its version of a mark go the same way, so the memo never
 * claims more than the transaction still holds.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/partition.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "lockfence.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

typedef struct MemoEntry
{
	const char *resource;
	uint32		hash;
	char		status;
	HeldToken	held;
} MemoEntry;

#define SH_PREFIX memo
#define SH_ELEMENT_TYPE MemoEntry
#define SH_KEY_TYPE const char *
#define SH_KEY resource
#define SH_HASH_KEY(tb, key) hash_bytes((const unsigned char *) (key), strlen(key))
#define SH_EQUAL(tb, a, b) (strcmp((a), (b)) == 0)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry) ((entry)->hash)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* A name of this length, or shorter, is kept without an allocation. */
#define FIRST_NAME_SIZE 96

/* One change, and what it replaced. */
typedef struct UndoRecord
{
	int			level;			/* nesting level it belongs to */
	const char *resource;		/* NULL: the ambient token */
	HeldToken	before;
} UndoRecord;

#define UNDO_LOG_START 16

/* The row whose UPDATE passed last, at one depth of triggers. */
typedef struct LastRow
{
	int			depth;
	int			level;			/* nesting level it belongs to */
	Oid			relid;
	ItemPointerData tid;
	FenceToken	token;
	uint64		move;			/* its DELETE half has passed as well: number
								 * of the move; else 0 */
} LastRow;

#define LAST_ROWS_START 4

PG_FUNCTION_INFO_V1(lockfence_present_ambient);
PG_FUNCTION_INFO_V1(lockfence_presented);

static FenceToken ambient = 0;
static MemoEntry first_entry;	/* the transaction's first resource ... */
static char first_name[FIRST_NAME_SIZE];
static memo_hash *memo = NULL;	/* ... and all others */
static UndoRecord *undo_log = NULL;
static int	undo_used = 0;
static int	undo_size = 0;
static int	held_locks = 0;
static uint64 version = 1;		/* changes with all of the above */
static LastRow *last_rows = NULL;
static int	last_used = 0;
static int	last_size = 0;
static uint64 moves = 0;		/* how many there were */
static List *bypassed = NIL;

/* Forget everything; TopTransactionContext frees it. */
static void
forget_transaction(void)
{
	ambient = 0;
	first_entry.resource = NULL;
	memo = NULL;
	undo_log = NULL;
	undo_used = undo_size = 0;
	held_locks = 0;
	version++;
	last_rows = NULL;
	last_used = last_size = 0;
	bypassed = NIL;
}

/*
 * Log what a change is about to replace.  What the transaction itself changes
 * needs no undoing: it is forgotten as a whole.
 */
static void
log_undo(const char *resource, HeldToken before)
{
	if (GetCurrentTransactionNestLevel() == 1)
		return;
	if (undo_log == NULL)
	{
		undo_log = MemoryContextAlloc(TopTransactionContext,
									  UNDO_LOG_START * sizeof(UndoRecord));
		undo_size = UNDO_LOG_START;
	}
	else if (undo_used == undo_size)
	{
		undo_log = repalloc_huge(undo_log,
								 2 * (Size) undo_size * sizeof(UndoRecord));
		undo_size *= 2;
	}
	undo_log[undo_used].level = GetCurrentTransactionNestLevel();
	undo_log[undo_used].resource = resource;
	undo_log[undo_used].before = before;
	undo_used++;
}

/* The memo entry of the resource, or NULL. */
static MemoEntry *
find_entry(const char *resource)
{
	if (first_entry.resource == NULL)
		return NULL;
	if (strcmp(first_entry.resource, resource) == 0)
		return &first_entry;
	return memo ? memo_lookup(memo, resource) : NULL;
}

/*
 * Make a memo entry for the resource, which has none.  Most transactions touch
 * one resource only, and a table for that would cost more than the rest.
 */
static MemoEntry *
make_entry(const char *resource)
{
	Size		size = strlen(resource) + 1;
	bool		found;
	char	   *name;

	if (first_entry.resource == NULL && size <= FIRST_NAME_SIZE)
	{
		first_entry.resource = memcpy(first_name, resource, size);
		return &first_entry;
	}
	name = MemoryContextStrdup(TopTransactionContext, resource);
	if (first_entry.resource == NULL)
	{
		first_entry.resource = name;
		return &first_entry;
	}
	if (memo == NULL)
		memo = memo_create(TopTransactionContext, 16, NULL);
	return memo_insert(memo, name, &found);
}

/* Set a memo entry, keeping count of what is held by a note or a lock. */
static void
set_held(MemoEntry *entry, HeldToken held)
{
	held_locks += (int) held.locked - (int) entry->held.locked;
	version++;
	entry->held = held;
}

static void
set_ambient(FenceToken token)
{
	ambient = token;
	version++;
}

/* Take back all that the current subtransaction has changed. */
static void
undo_level(int level)
{
	while (last_used > 0 && last_rows[last_used - 1].level >= level)
		last_used--;
	while (undo_used > 0 && undo_log[undo_used - 1].level >= level)
	{
		UndoRecord *undo = &undo_log[--undo_used];

		if (undo->resource == NULL)
			set_ambient(undo->before.token);
		else
			set_held(find_entry(undo->resource), undo->before);
	}
}

/* Hand the current subtransaction's changes to its parent. */
static void
reparent_level(int level)
{
	if (level == 2)
		undo_used = 0;
	for (int i = undo_used - 1; i >= 0 && undo_log[i].level >= level; i--)
		undo_log[i].level = level - 1;
	for (int i = last_used - 1; i >= 0 && last_rows[i].level >= level; i--)
		last_rows[i].level = level - 1;
}

static void
at_transaction_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			forget_transaction();
			break;
		default:
			break;
	}
}

static void
at_subtransaction_event(SubXactEvent event, SubTransactionId mysubid,
						SubTransactionId parentsubid, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		undo_level(GetCurrentTransactionNestLevel());
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		reparent_level(GetCurrentTransactionNestLevel());
}

/* Called once a backend. */
void
lockfence_holder_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
	RegisterSubXactCallback(at_subtransaction_event, NULL);
}

/* The token presented for whatever the writes touch; 0: none. */
FenceToken
lockfence_ambient_token(void)
{
	return ambient;
}

void
lockfence_set_ambient_token(FenceToken token)
{
	HeldToken	before = {.token = ambient};

	log_undo(NULL, before);
	set_ambient(token);
}

/* What this transaction holds for the resource; NULL: nothing. */
const HeldToken *
lockfence_held_token(const char *resource)
{
	MemoEntry  *entry = find_entry(resource);

	return entry && entry->held.token != 0 ? &entry->held : NULL;
}

/* Was the token accepted in this transaction, for whatever resource? */
bool
lockfence_holds_token(FenceToken token)
{
	memo_iterator i;
	MemoEntry  *entry;

	if (first_entry.resource != NULL && first_entry.held.token == token)
		return true;
	if (memo == NULL)
		return false;
	memo_start_iterate(memo, &i);
	while ((entry = memo_iterate(memo, &i)) != NULL)
	{
		if (entry->held.token == token)
			return true;
	}
	return false;
}

/* Note that a token was accepted for the resource. */
void
lockfence_remember_token(const char *resource, HeldToken held)
{
	MemoEntry  *entry = find_entry(resource);

	if (entry == NULL)
	{
		entry = make_entry(resource);
		entry->held = (HeldToken) {0};
	}
	log_undo(entry->resource, entry->held);
	set_held(entry, held);
}

/* Note that an administrator's act in this transaction outdates its token. */
void
lockfence_forget_token(const char *resource)
{
	if (lockfence_held_token(resource) != NULL)
		lockfence_remember_token(resource, (HeldToken) {0});
}

/* How many resources are held by a note or a lock (hold.c), not by the mark itself. */
int
lockfence_held_locks(void)
{
	return held_locks;
}

/* Changes whenever what is presented or held does. */
uint64
lockfence_held_version(void)
{
	return version;
}

/*
 * What was remembered at this depth of triggers; NULL: nothing.  What triggers
 * further down have left is over.
 */
static LastRow *
last_row(void)
{
	int			depth = DatumGetInt32(pg_trigger_depth(NULL));

	while (last_used > 0 && last_rows[last_used - 1].depth > depth)
		last_used--;
	return last_used > 0 && last_rows[last_used - 1].depth == depth ?
		&last_rows[last_used - 1] : NULL;
}

/* The same, with room made for it. */
static LastRow *
make_last_row(void)
{
	LastRow    *row = last_row();

	if (row != NULL)
		return row;
	if (last_rows == NULL)
	{
		last_rows = MemoryContextAlloc(TopTransactionContext,
									   LAST_ROWS_START * sizeof(LastRow));
		last_size = LAST_ROWS_START;
	}
	else if (last_used == last_size)
	{
		last_rows = repalloc(last_rows, 2 * last_size * sizeof(LastRow));
		last_size *= 2;
	}
	return &last_rows[last_used++];
}

/*
 * Note the row version whose UPDATE a guard has let pass, and by which token
 * (0: unprotected).  If the UPDATE moves the row to another partition, its
 * DELETE and INSERT halves follow; what triggers write in between is of
 * another depth.
 */
void
lockfence_remember_row(Oid relid, ItemPointer tid, FenceToken token)
{
	*make_last_row() = (LastRow) {
		.depth = DatumGetInt32(pg_trigger_depth(NULL)),
		.level = GetCurrentTransactionNestLevel(),
		.relid = relid,
		.tid = *tid,
		.token = token
	};
}

/* The executor is done with a row: so is its move, INSERT half or not. */
static void
end_move(void *arg)
{
	uint64		move = *(uint64 *) arg;

	for (int i = 0; i < last_used; i++)
	{
		if (last_rows[i].move == move)
			last_rows[i].move = 0;
	}
}

/*
 * Begin a move.  The context that a trigger is called in lasts as long as the
 * executor is at the row, so that no later statement's INSERT is taken for a half
 * that never came.
 */
static uint64
begin_move(void)
{
	struct
	{
		MemoryContextCallback callback;
		uint64		move;
	}		   *end = palloc0(sizeof(*end));

	end->move = ++moves;
	end->callback.func = end_move;
	end->callback.arg = &end->move;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &end->callback);
	return end->move;
}

/* Is this DELETE half of such a move?  Tells the token of its UPDATE. */
bool
lockfence_row_moves_out(Oid relid, ItemPointer tid, FenceToken *token)
{
	LastRow    *row = last_row();

	if (row == NULL)
		return false;
	row->move = row->relid == relid && ItemPointerEquals(&row->tid, tid) ? begin_move() : 0;
	*token = row->token;
	return row->move != 0;
}

/* The partitioned table that a table is part of, or the table itself. */
static Oid
partition_root(Oid relid)
{
	List	   *ancestors = get_partition_ancestors(relid);

	return ancestors != NIL ? llast_oid(ancestors) : relid;
}

/* Is this the INSERT half of a move whose UPDATE went unprotected? */
bool
lockfence_row_moves_in_unprotected(Oid relid)
{
	LastRow    *row = last_row();

	if (row == NULL || row->move == 0 || row->token != 0 ||
		partition_root(relid) != partition_root(row->relid))
		return false;
	row->move = 0;
	return true;
}

/* Is this the transaction's first bypassed write to the table? */
bool
lockfence_first_bypass(Oid relid)
{
	MemoryContext old;

	if (list_member_oid(bypassed, relid))
		return false;
	old = MemoryContextSwitchTo(TopTransactionContext);
	bypassed = lappend_oid(bypassed, relid);
	MemoryContextSwitchTo(old);
	return true;
}

/* present(token): the ambient token of this transaction */
Datum
lockfence_present_ambient(PG_FUNCTION_ARGS)
{
	lockfence_require_token(fcinfo, 0);
	lockfence_set_ambient_token(PG_GETARG_INT64(0));
	PG_RETURN_VOID();
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

/* presented(): the ambient token (resource null), and the memo */
Datum
lockfence_presented(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	lockfence_begin_rows(fcinfo);
	if (ambient != 0)
		put_presented(rsinfo, NULL, ambient);
	if (first_entry.resource != NULL && first_entry.held.token != 0)
		put_presented(rsinfo, first_entry.resource, first_entry.held.token);
	if (memo != NULL)
	{
		memo_iterator i;
		MemoEntry  *entry;

		memo_start_iterate(memo, &i);
		while ((entry = memo_iterate(memo, &i)) != NULL)
		{
			CHECK_FOR_INTERRUPTS();
			if (entry->held.token != 0)
				put_presented(rsinfo, entry->resource, entry->held.token);
		}
	}
	return (Datum) 0;
}
