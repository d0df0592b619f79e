/*
 * advances.c
 *		The marks that this transaction has changed.  When it commits, they are kept as
 *		takeovers (takeovers.c) and, if that is asked for, notified of.
 *
 * What is rolled back, with the transaction or to a savepoint, is no takeover.  Each
 * change belongs to a subtransaction, as in xact.c.
 *
 * A transaction is on record with its first changes only, and the number of the others:
 * one statement may take over 100,000 resources, and would leave nothing else in the
 * rings, nor in the queue of notifications.
 *
 * A prepared transaction is on record as of PREPARE TRANSACTION, since COMMIT PREPARED
 * mostly comes from another session, which knows nothing of it.  It notifies no session:
 * PostgreSQL lets no transaction prepare that has notified.
 *
 * After a commit nothing may fail.  So all that takes memory is done before it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/async.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/json.h"
#include "utils/memutils.h"

#include "advances.h"
#include "rowname.h"
#include "stats.h"

#define CHANNEL "lockfence_takeover"

/* How many changes of a transaction are on record. */
#define MAX_OF_TRANSACTION 64

#define LIST_START 4

typedef struct Advance
{
	int			level;			/* nesting level that it belongs to */
	const char *resource;		/* NULL: as many changes as count says */
	uint64		id;
	Oid			table;
	MarkChange	change;
	int64		count;
} Advance;

/* setting; not for everybody, who would be told names made of values that only a function or a trigger may read */
static bool notify_takeovers = false;

static Advance first_advances[LIST_START];
static Advance *advances = first_advances;
static int	nadvances = 0;
static int	size = LIST_START;
static int	nrecorded = 0;		/* those with a resource */
static Takeover draft;			/* what is kept next; its client is that of the last commit */

/* Called once per backend, or by the postmaster. */
void
lockfence_advances_init(void)
{
	DefineCustomBoolVariable("lockfence.notify_takeovers",
							 "Notifies on channel \"lockfence_takeover\" of tokens that become a mark.",
							 "The payload is JSON, with resource and token.",
							 &notify_takeovers, false, PGC_SUSET, 0,
							 NULL, NULL, NULL);
}

/* Forget everything; TopTransactionContext frees it. */
static void
forget_advances(void)
{
	advances = first_advances;
	size = LIST_START;
	nadvances = nrecorded = 0;
}

/* The next entry of the list. */
static Advance *
add_entry(void)
{
	if (nadvances == size)
	{
		Advance    *former = advances;

		advances = MemoryContextAlloc(TopTransactionContext, 2 * size * sizeof(Advance));
		memcpy(advances, former, size * sizeof(Advance));
		size *= 2;
	}
	return &advances[nadvances++];
}

/* Count one that is not on record, in an entry of its level. */
static void
leave_out(int level)
{
	Advance    *last = &advances[nadvances - 1];

	if (last->resource == NULL && last->level == level)
		last->count++;
	else
		*add_entry() = (Advance) {.level = level,.count = 1};
}

/* Is one more change to be on record?  If not, it is counted at most. */
static bool
takes_one_more(void)
{
	if (!lockfence_tracks() && !notify_takeovers)
		return false;
	if (nrecorded < MAX_OF_TRANSACTION)
		return true;
	leave_out(GetCurrentTransactionNestLevel());
	return false;
}

/* Put a change on record, by a name that is kept until the transaction ends. */
static void
add_advance(Relation rel, const char *resource, uint64 id, MarkChange change)
{
	*add_entry() = (Advance) {
		.level = GetCurrentTransactionNestLevel(),
		.resource = resource,
		.id = id,
		.table = rel ? RelationGetRelid(rel) : InvalidOid,
		.change = change
	};
	nrecorded++;
}

/* Note that a mark has been advanced, for a write to the table or for none, by a name that is kept until the end. */
void
lockfence_note_advance(Relation rel, const char *resource, uint64 id, MarkChange change)
{
	if (takes_one_more())
		add_advance(rel, resource, id, change);
}

/* The same of the mark in a row. */
void
lockfence_note_row_advance(Relation rel, TupleTableSlot *row, MarkChange change)
{
	RowName		name;

	if (!takes_one_more())
		return;
	name = lockfence_name_row(rel, row);
	add_advance(rel, MemoryContextStrdup(TopTransactionContext, name.text), name.id, change);
}

/* The same where an administrator has set the mark, or where it came from elsewhere. */
void
lockfence_note_change(const ResourceKey *resource, MarkChange change)
{
	if (change.before != change.token && takes_one_more())
		add_advance(NULL, MemoryContextStrdup(TopTransactionContext, resource->name), resource->hash, change);
}

/* Take back what the current subtransaction has changed. */
static void
undo_level(int level)
{
	while (nadvances > 0 && advances[nadvances - 1].level >= level)
		nrecorded -= advances[--nadvances].resource != NULL;
}

/* Hand the current subtransaction's changes to its parent, and so those that are only counted to one entry. */
static void
reparent_level(int level)
{
	int			first = nadvances;

	while (first > 0 && advances[first - 1].level >= level)
		advances[--first].level = level - 1;
	if (first > 0 && first < nadvances && advances[first - 1].level == level - 1 &&
		advances[first - 1].resource == NULL && advances[first].resource == NULL)
	{
		advances[first - 1].count += advances[first].count;
		nadvances--;
		memmove(&advances[first], &advances[first + 1], (nadvances - first) * sizeof(Advance));
	}
}

/* Notify the sessions that listen.  At most as long as the name of a resource can be, as rows may have longer ones. */
static void
notify(const Advance *advance)
{
	StringInfoData payload;
	int			length = pg_mbcliplen(advance->resource, strlen(advance->resource),
									  LOCKFENCE_MAX_RESOURCE_LEN);

	initStringInfo(&payload);
	appendStringInfoString(&payload, "{\"resource\": ");
	escape_json(&payload, pnstrdup(advance->resource, length));
	appendStringInfo(&payload, ", \"token\": \"" INT64_FORMAT "\"}", advance->change.token);
	Async_Notify(CHANNEL, payload.data);
}

/* The transaction is about to commit: do what may fail. */
static void
prepare_to_keep(bool notifies)
{
	lockfence_update_client(&draft.client);
	draft.database = MyDatabaseId;
	for (int i = 0; notifies && i < nadvances; i++)
	{
		if (advances[i].resource != NULL)
			notify(&advances[i]);
	}
}

/* How many changes are only counted. */
static int64
count_left_out(void)
{
	int64		count = 0;

	for (int i = 0; i < nadvances; i++)
		count += advances[i].count;
	return count;
}

/* The transaction has been committed, or prepared: keep what it has changed.  The last one tells how many are left out. */
static void
keep_advances(bool prepared)
{
	int			left = nrecorded;

	draft.at = GetCurrentTransactionStopTimestamp();
	draft.prepared = prepared;
	draft.left_out = 0;
	for (int i = 0; left > 0; i++)
	{
		const Advance *advance = &advances[i];

		if (advance->resource == NULL)
			continue;
		if (--left == 0)
			draft.left_out = count_left_out();
		draft.table = advance->table;
		draft.id = advance->id;
		draft.change = advance->change;
		lockfence_keep_takeover(&draft, lockfence_set_name(&draft.resource, advance->resource));
	}
}

/*
 * How the transaction goes, if it has changed a mark.  What it has changed may all have been
 * taken back since, but the list must not outlive the context that it may be in.
 */
void
lockfence_advances_at_xact(XactEvent event)
{
	if (nadvances == 0 && advances == first_advances)
		return;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			prepare_to_keep(notify_takeovers && event == XACT_EVENT_PRE_COMMIT);
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
			if (lockfence_tracks())
				keep_advances(event == XACT_EVENT_PREPARE);
			forget_advances();
			break;
		case XACT_EVENT_ABORT:
			forget_advances();
			break;
		default:
			break;
	}
}

/* How a subtransaction goes. */
void
lockfence_advances_at_subxact(SubXactEvent event)
{
	if (nadvances == 0)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		undo_level(GetCurrentTransactionNestLevel());
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		reparent_level(GetCurrentTransactionNestLevel());
}
