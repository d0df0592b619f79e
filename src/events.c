/*
 * events.c
 *		What the server tells the library: that something in the catalogs has
 *		changed, and how transactions and subtransactions go.
 *
 * The server has ten places for callbacks on relations in all, for every
 * library of a backend, and to ask for an eleventh is FATAL.  So the library
 * takes one place of each kind, when it is loaded, and the rooms that want to
 * know stand in the tables below; the server's own order, which turns that of
 * the registration round for some kinds and not for others, does not matter.
 *
 * The order of a table counts where one room's part relies on another's.
 *
 * Invalidations: it does not.  Each room has a count of the changes that concern
 * it, and what a room keeps is right as long as the count is what it was before
 * that was read.  They may come at any look into the catalogs, and outside of
 * transactions, so a room counts and does no more.
 *
 * Transactions: before a commit the timeline comes before durability, since what
 * it writes is a part of what may have to be durable.  After it, and after an
 * abort, those who wait for a resource come first: holds are let go before
 * anything else is put in order.  What comes after that is forgotten, room by
 * room, and none may fail: the commit cannot be taken back.
 *
 * Subtransactions: a claim on a resource ends before what the memo says of it is
 * rolled back, so that nobody waits for that.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "ddl.h"
#include "durable.h"
#include "events.h"
#include "fencecache.h"
#include "relation.h"
#include "reslock.h"
#include "state.h"
#include "timeline.h"
#include "validator.h"
#include "witness.h"
#include "xact.h"

/* Of which catalogs' entries the rooms want to know; see at_syscache. */
static const int watched_caches[] = {DATABASEOID, NAMESPACEOID, PROCOID, TYPEOID};

static void (*const relcache_rooms[]) (Oid relid) = {
	lockfence_state_at_relcache,
	lockfence_timeline_at_relcache,
	lockfence_relation_at_relcache,
	lockfence_witness_at_relcache,
	lockfence_fencecache_at_relcache
};

static void (*const syscache_rooms[]) (int cacheid) = {
	lockfence_witness_at_syscache,
	lockfence_validator_at_syscache
};

static void (*const xact_rooms[]) (XactEvent event) = {
	lockfence_reslock_at_xact,
	lockfence_memo_at_xact,
	lockfence_timeline_at_xact,
	lockfence_durable_at_xact,
	lockfence_ddl_at_xact
};

static void (*const subxact_rooms[]) (SubXactEvent event) = {
	lockfence_reslock_at_subxact,
	lockfence_memo_at_subxact,
	lockfence_ddl_at_subxact
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
	for (int i = 0; i < lengthof(xact_rooms); i++)
		xact_rooms[i] (event);
}

static void
at_subxact(SubXactEvent event, SubTransactionId mysubid,
		   SubTransactionId parentsubid, void *arg)
{
	for (int i = 0; i < lengthof(subxact_rooms); i++)
		subxact_rooms[i] (event);
}

/* Called once a backend, or by the postmaster. */
void
lockfence_events_init(void)
{
	CacheRegisterRelcacheCallback(at_relcache, (Datum) 0);
	for (int i = 0; i < lengthof(watched_caches); i++)
		CacheRegisterSyscacheCallback(watched_caches[i], at_syscache, (Datum) 0);
	RegisterXactCallback(at_xact, NULL);
	RegisterSubXactCallback(at_subxact, NULL);
}
