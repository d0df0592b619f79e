/*
 * events.c
 *		What the server tells the library: that something in the catalogs has
 *		changed, and how transactions and subtransactions go.
 *
 * A backend has ten slots for relcache callbacks, for all of its libraries, and
 * to ask for an eleventh is FATAL.  So the library takes one slot of each kind
 * when it is loaded, and the files that want to know are in the tables below.
 * The server calls some kinds of callbacks in the order of registration and
 * others in reverse; that does not matter here.
 *
 * The order of a table matters where the part of one file relies on another's.
 *
 * Invalidations: it does not.  Each file counts the changes that concern it, and
 * what it keeps is valid as long as the count is what it was before that was
 * read.  Invalidations may come at any access to the catalogs, and outside of
 * transactions, so a file counts them and does no more.
 *
 * Transactions: before a commit comes what may refuse it, and then the timeline
 * before durability, since what the timeline writes may have to be durable.  After
 * a commit or an abort, the transactions that wait for a resource come first: holds
 * are released before anything else is put in order.  Then advances are kept, by
 * names that the memo has.  After that each file forgets what it kept, and none may
 * fail: the commit cannot be taken back.
 *
 * Subtransactions: a strong lock on a resource ends before the memo is rolled
 * back, so that no other transaction waits for that.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "advances.h"
#include "call.h"
#include "ddl.h"
#include "durable.h"
#include "events.h"
#include "fastpath.h"
#include "fencecache.h"
#include "grant.h"
#include "limit.h"
#include "relation.h"
#include "state.h"
#include "timeline.h"
#include "unchecked.h"
#include "validator.h"
#include "witness.h"
#include "xact.h"

/* The catalogs whose entries the files want to know of; see at_syscache. */
static const int watched_caches[] = {AUTHMEMROLEMEM, AUTHOID, DATABASEOID, NAMESPACEOID, PROCOID, TYPEOID};

static void (*const relcache_rooms[]) (Oid relid) = {
	lockfence_state_at_relcache,
	lockfence_timeline_at_relcache,
	lockfence_relation_at_relcache,
	lockfence_witness_at_relcache,
	lockfence_fencecache_at_relcache
};

static void (*const syscache_rooms[]) (int cacheid) = {
	lockfence_witness_at_syscache,
	lockfence_validator_at_syscache,
	lockfence_grant_at_syscache
};

static void (*const before_commit_rooms[]) (XactEvent event) = {
	lockfence_unchecked_at_xact,
	lockfence_limit_at_xact,
	lockfence_advances_at_xact,
	lockfence_timeline_at_xact,
	lockfence_durable_at_xact
};

static void (*const after_end_rooms[]) (XactEvent event) = {
	lockfence_fastpath_at_xact,
	lockfence_advances_at_xact,
	lockfence_memo_at_xact,
	lockfence_call_at_xact,
	lockfence_timeline_at_xact,
	lockfence_durable_at_xact,
	lockfence_ddl_at_xact
};

static void (*const subxact_rooms[]) (SubXactEvent event) = {
	lockfence_fastpath_at_subxact,
	lockfence_memo_at_subxact,
	lockfence_ddl_at_subxact,
	lockfence_advances_at_subxact
};

static void
at_relcache(Datum arg, Oid relid)
{
	for (int i = 0; i < lengthof(relcache_rooms); i++)
		relcache_rooms[i] (relid);
}

static void
at_syscache(Datum arg, int cacheid, uint32 hashvalue)
{
	for (int i = 0; i < lengthof(syscache_rooms); i++)
		syscache_rooms[i] (cacheid);
}

static void
at_xact(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
	{
		for (int i = 0; i < lengthof(before_commit_rooms); i++)
			before_commit_rooms[i] (event);
	}
	else
	{
		for (int i = 0; i < lengthof(after_end_rooms); i++)
			after_end_rooms[i] (event);
	}
}

static void
at_subxact(SubXactEvent event, SubTransactionId mysubid,
		   SubTransactionId parentsubid, void *arg)
{
	for (int i = 0; i < lengthof(subxact_rooms); i++)
		subxact_rooms[i] (event);
}

/* Called once per backend, or by the postmaster. */
void
lockfence_events_init(void)
{
	CacheRegisterRelcacheCallback(at_relcache, (Datum) 0);
	for (int i = 0; i < lengthof(watched_caches); i++)
		CacheRegisterSyscacheCallback(watched_caches[i], at_syscache, (Datum) 0);
	RegisterXactCallback(at_xact, NULL);
	RegisterSubXactCallback(at_subxact, NULL);
}
