/*
 * xact.c
 *		What this transaction has presented: the ambient token, and the memo of
 *		tokens that were accepted, by resource.
 *
 * All of it lives in backend memory and ends with the transaction, also by
 * PREPARE, so that nothing passes to the next client of a pooled connection.
 *
 * Every change belongs to the subtransaction that made it: an undo log holds
 * what was there before, and an aborting subtransaction rolls its part back.
 * Its locks and its version of a mark go the same way, so the memo never
 * says more than the transaction still holds.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "lockfence.h"
#include "move.h"
#include "rowhold.h"
#include "xact.h"

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

/* The ambient token, and what became of those before it. */
typedef struct AmbientToken
{
	FenceToken	token;			/* 0: none */
	FenceToken	unchecked;		/* replaced before a fence was asked about it; 0: none */
	bool		is_checked;
	TimestampTz rows_until;		/* the end of the session's, if rows of row fences were written under it */
} AmbientToken;

/* One change, and what it replaced. */
typedef struct UndoRecord
{
	int			level;			/* nesting level it belongs to */
	const char *resource;		/* NULL: the ambient token */
	union
	{
		HeldToken	held;
		AmbientToken ambient;
	}			before;
} UndoRecord;

#define UNDO_LOG_START 16

static AmbientToken ambient = {0};
static MemoEntry first_entry;	/* the transaction's first resource ... */
static char first_name[FIRST_NAME_SIZE];
static memo_hash *memo = NULL;	/* ... and all others */
static UndoRecord *undo_log = NULL;
static int	undo_used = 0;
static int	undo_size = 0;
static int	held_locks = 0;
static uint64 version = 1;		/* changes with all of the above */
static List *bypassed = NIL;
bool		lockfence_has_limits = false;	/* does a token that counts in this transaction end? */
uint64		lockfence_accepted_rows = 0;
bool		lockfence_ambient_was_lost = false; /* was nothing written by that of the transaction before? */

/* Forget everything; TopTransactionContext frees it. */
static void
forget_transaction(void)
{
	ambient = (AmbientToken) {0};
	first_entry.resource = NULL;
	memo = NULL;
	undo_log = NULL;
	undo_used = undo_size = 0;
	held_locks = 0;
	version++;
	bypassed = NIL;
	lockfence_has_limits = false;
	lockfence_accepted_rows = 0;
	lockfence_forget_moves();
	lockfence_forget_row_holds();
}

/*
 * A new record of the undo log, to which the caller adds what its change replaces;
 * NULL: the transaction itself changes it, which needs no undoing, since it is
 * forgotten as a whole.
 */
static UndoRecord *
log_undo(const char *resource)
{
	if (GetCurrentTransactionNestLevel() == 1)
		return NULL;
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
	return &undo_log[undo_used++];
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

/* Set a memo entry, keeping count of what is held by a slot or a lock. */
static void
set_held(MemoEntry *entry, HeldToken held)
{
	held_locks += (int) held.locked - (int) entry->held.locked;
	version++;
	entry->held = held;
}

static void
set_ambient(AmbientToken changed)
{
	UndoRecord *undo = log_undo(NULL);

	if (undo != NULL)
		undo->before.ambient = ambient;
	ambient = changed;
	version++;
}

/* Take back all that the current subtransaction has changed. */
static void
undo_level(int level)
{
	lockfence_undo_moves(level);
	lockfence_undo_row_holds(level);
	while (undo_used > 0 && undo_log[undo_used - 1].level >= level)
	{
		UndoRecord *undo = &undo_log[--undo_used];

		if (undo->resource != NULL)
			set_held(find_entry(undo->resource), undo->before.held);
		else
		{
			ambient = undo->before.ambient;
			version++;
		}
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
	lockfence_reparent_moves(level);
	lockfence_reparent_row_holds(level);
}

/* How the transaction goes. */
void
lockfence_memo_at_xact(XactEvent event)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			lockfence_ambient_was_lost = event == XACT_EVENT_COMMIT && lockfence_unchecked_token() != 0;
			forget_transaction();
			break;
		default:
			break;
	}
}

/* How a subtransaction goes. */
void
lockfence_memo_at_subxact(SubXactEvent event)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		undo_level(GetCurrentTransactionNestLevel());
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		reparent_level(GetCurrentTransactionNestLevel());
}

/* The token presented for whatever the writes touch; 0: none. */
FenceToken
lockfence_ambient_token(void)
{
	return ambient.token;
}

/* Was the token accepted for a resource, or for a row? */
static bool
is_held(FenceToken token)
{
	return lockfence_holds_token(token) || lockfence_holds_row_by(token);
}

/* Was the ambient token compared with no mark? */
static bool
is_unchecked(void)
{
	return ambient.token != 0 && !ambient.is_checked && !is_held(ambient.token);
}

void
lockfence_set_ambient_token(FenceToken token)
{
	AmbientToken changed = {
		.token = token,
		.unchecked = ambient.unchecked,
		.is_checked = ambient.is_checked && ambient.token == token,
		.rows_until = ambient.rows_until
	};

	if (changed.unchecked == 0 && ambient.token != token && is_unchecked())
		changed.unchecked = ambient.token;
	set_ambient(changed);
}

/*
 * Remember that a fence was asked about the ambient token.  A rollback to a savepoint
 * takes that back: with it go the hold on the resource and the lock on the row, and
 * then nothing keeps another holder from advancing the mark.
 */
void
lockfence_check_ambient_token(void)
{
	AmbientToken checked = ambient;

	if (checked.is_checked)
		return;
	checked.is_checked = true;
	set_ambient(checked);
}

/* An ambient token of this transaction that was compared with no mark; 0: there is none. */
FenceToken
lockfence_unchecked_token(void)
{
	if (ambient.unchecked != 0 && !is_held(ambient.unchecked))
		return ambient.unchecked;
	return is_unchecked() ? ambient.token : 0;
}

/* What this transaction holds for the resource; NULL: nothing. */
const HeldToken *
lockfence_held_token(const char *resource)
{
	MemoEntry  *entry = find_entry(resource);

	return entry && entry->held.token != 0 ? &entry->held : NULL;
}

static bool
is_accepted(const HeldToken *held, FenceToken token)
{
	return held->token == token && !held->refused;
}

/* Was the token accepted in this transaction, for whatever resource that has a name? */
bool
lockfence_holds_token(FenceToken token)
{
	memo_iterator i;
	MemoEntry  *entry;

	if (first_entry.resource != NULL && is_accepted(&first_entry.held, token))
		return true;
	if (memo == NULL)
		return false;
	memo_start_iterate(memo, &i);
	while ((entry = memo_iterate(memo, &i)) != NULL)
	{
		if (is_accepted(&entry->held, token))
			return true;
	}
	return false;
}

/* Remember what is held for the resource, until the end or the rollback of this subtransaction. */
static void
change_entry(MemoEntry *entry, HeldToken held)
{
	UndoRecord *undo = log_undo(entry->resource);

	if (undo != NULL)
		undo->before.held = entry->held;
	set_held(entry, held);
}

/*
 * Remember that a token was accepted for the resource.  What limits the same token in time
 * stays.  Returns the name of the resource, which is kept until the transaction ends.
 */
const char *
lockfence_remember_token(const char *resource, HeldToken held)
{
	MemoEntry  *entry = find_entry(resource);

	if (entry == NULL)
	{
		entry = make_entry(resource);
		entry->held = (HeldToken) {0};
	}
	if (entry->held.token == held.token)
		held.limit = entry->held.limit;
	change_entry(entry, held);
	return entry->resource;
}

/* Set until when the token counts, if it is the one that is held for the resource. */
void
lockfence_limit_token(const char *resource, FenceToken token, TokenLimit limit)
{
	MemoEntry  *entry = find_entry(resource);
	HeldToken	held;

	if (entry == NULL || entry->held.token != token)
		return;
	held = entry->held;
	held.limit = limit;
	held.limit.written |= entry->held.limit.written;
	lockfence_has_limits = true;
	if (limit.until != entry->held.limit.until || limit.by_lease != entry->held.limit.by_lease ||
		held.limit.written != entry->held.limit.written)
		change_entry(entry, held);
}

/* The same of the session's token, under which rows of row fences were written. */
void
lockfence_limit_rows(TimestampTz until)
{
	AmbientToken limited = ambient;

	limited.rows_until = until;
	lockfence_has_limits = true;
	if (ambient.rows_until != until)
		set_ambient(limited);
}

/* When that ends; 0: no such row was written. */
TimestampTz
lockfence_limit_of_rows(void)
{
	return ambient.rows_until;
}

/*
 * Remember that a token was presented for the resource and, which was only reported,
 * not accepted: the writes that follow present it too.  What was accepted before it
 * stays.
 */
void
lockfence_remember_refused(const char *resource, FenceToken token)
{
	if (lockfence_held_token(resource) == NULL)
		lockfence_remember_token(resource, (HeldToken) {.token = token, .refused = true});
}

/* Remember that an administrator's act in this transaction makes its token stale. */
void
lockfence_forget_token(const char *resource)
{
	if (lockfence_held_token(resource) != NULL)
		(void) lockfence_remember_token(resource, (HeldToken) {0});
}

/* Remember that the caller names a resource which a row may have named before. */
void
lockfence_reveal_name(const char *resource)
{
	const HeldToken *held = lockfence_held_token(resource);
	HeldToken	named;

	if (held == NULL || !OidIsValid(held->table))
		return;
	named = *held;
	named.table = InvalidOid;
	(void) lockfence_remember_token(resource, named);
}

/* How many resources are held by a slot or a lock (reslock.c), not by the mark itself. */
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

/* What else the answers to a write depend on has changed. */
void
lockfence_change_version(void)
{
	version++;
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

/* Show a visitor what is held, resource by resource. */
void
lockfence_visit_held_tokens(HeldTokenVisitor visit, void *arg)
{
	memo_iterator i;
	MemoEntry  *entry;

	if (first_entry.resource != NULL && first_entry.held.token != 0)
		visit(first_entry.resource, &first_entry.held, arg);
	if (memo == NULL)
		return;
	memo_start_iterate(memo, &i);
	while ((entry = memo_iterate(memo, &i)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (entry->held.token != 0)
			visit(entry->resource, &entry->held, arg);
	}
}
