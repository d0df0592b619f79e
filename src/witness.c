/*
 * witness.c
 *		What makes a mark in the shared cache valid.
 *
 * A mark that was seen committed under its resource's lock stays the same until
 * mark.c changes it, and mark.c then drops it from the cache.  That holds for this
 * table, in this file, of this database, as long as no DML bypasses mark.c: as long
 * as the trigger that sends DML there always fires, for every row, and is ours.  So
 * the catalog rows that say all this are the witness of a cached mark, which is
 * stored with it.  A reader compares it with the witness that it finds itself.  So
 * a change that no user of the cache has heard of, because a session made it that
 * does not use the cache, gives another witness all the same.  While the trigger is
 * not certain to fire there is no witness, and nothing is cached.
 *
 * A row is identified by its TID and by the transaction that wrote it.  A row that
 * was changed and changed back is another version, even within one transaction,
 * and has another TID, which is not reused before that transaction has ended.
 * CREATE DATABASE may reuse an OID and copies every other catalog, but its own row
 * is new.
 *
 * The session looks its witness up again after each change of the catalogs that
 * may affect it, of which it learns by invalidation messages, as core's own caches
 * do.  Each check accepts pending messages before it looks.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"

#include "relation.h"
#include "witness.h"

/* The symbol of the function that sends DML to mark.c (admin.c). */
#define GUARD_SYMBOL "lockfence_guard_mark"

/* BEFORE INSERT OR UPDATE OR DELETE FOR EACH ROW */
#define GUARD_TYPE \
	(TRIGGER_TYPE_BEFORE | TRIGGER_TYPE_ROW | \
	 TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE)

/* The rows. */
typedef enum Source
{
	DATABASE_ROW,
	TABLE_ROW,					/* tells the file, too */
	TRIGGER_ROW,
	FUNCTION_ROW
} Source;

/* Changes of the rows that the witness consists of, as far as this backend knows. */
uint64		lockfence_witness_changes = 1;

static uint64 known_changes = 0;	/* at which the witness is known; 0: it is not */
static const MarkWitness *known = NULL; /* NULL: there is no witness */
static Oid	table = InvalidOid; /* whose marks it witnesses */

/* A relcache entry has changed; which relations matter is known with the witness. */
void
lockfence_witness_at_relcache(Oid relid)
{
	if (known_changes != lockfence_witness_changes || known == NULL ||
		!OidIsValid(relid) || relid == table)
		lockfence_witness_changes++;
}

/* A row of another catalog has changed. */
void
lockfence_witness_at_syscache(int cacheid)
{
	if (cacheid == DATABASEOID || cacheid == PROCOID)
		lockfence_witness_changes++;
}

/* Record the version of a row. */
static void
note_row(MarkWitness *seen, Source source, HeapTuple tuple)
{
	seen->writers[source] = (uint64) HeapTupleHeaderGetRawXmin(tuple->t_data) << 32 |
		ItemPointerGetBlockNumber(&tuple->t_self);
	seen->items |= (uint64) ItemPointerGetOffsetNumber(&tuple->t_self) << 16 * source;
}

/* Record the database, as it was created; false if it does not exist. */
static bool
note_database(MarkWitness *seen)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));

	if (!HeapTupleIsValid(tuple))
		return false;
	note_row(seen, DATABASE_ROW, tuple);
	ReleaseSysCache(tuple);
	return true;
}

/* Record the table of marks; false if it does not exist, or has no triggers. */
static bool
note_table(MarkWitness *seen, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		has_triggers;

	if (!HeapTupleIsValid(tuple))
		return false;
	has_triggers = ((Form_pg_class) GETSTRUCT(tuple))->relhastriggers;
	note_row(seen, TABLE_ROW, tuple);
	ReleaseSysCache(tuple);
	return has_triggers;
}

/* Record a trigger's function, if it is the expected one. */
static bool
note_function(MarkWitness *seen, Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	Datum		symbol;
	bool		isnull;
	bool		is_ours;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	symbol = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	is_ours = form->prolang == ClanguageId && !isnull &&
		strcmp(TextDatumGetCString(symbol), GUARD_SYMBOL) == 0;
	note_row(seen, FUNCTION_ROW, tuple);
	ReleaseSysCache(tuple);
	return is_ours;
}

/* Record a trigger, if it is our guard and certain to fire. */
static bool
note_guard(MarkWitness *seen, HeapTuple tuple)
{
	Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);

	if (form->tgenabled != TRIGGER_FIRES_ALWAYS || form->tgtype != GUARD_TYPE ||
		form->tgattr.dim1 != 0 || !heap_attisnull(tuple, Anum_pg_trigger_tgqual, NULL))
		return false;
	note_row(seen, TRIGGER_ROW, tuple);
	return note_function(seen, form->tgfoid);
}

/* Find the guard among the triggers of the table. */
static bool
find_guard(MarkWitness *seen, Oid relid)
{
	Relation	triggers = table_open(TriggerRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(triggers, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
		found = note_guard(seen, tuple);
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);
	return found;
}

/* Look the witness up, until no change comes meanwhile. */
static void
find_witness(void)
{
	static MarkWitness witness;

	while (known_changes != lockfence_witness_changes)
	{
		uint64		before = lockfence_witness_changes;
		Oid			relid = lockfence_mark_relid();
		MarkWitness seen = {0};
		bool		cacheable = note_database(&seen) && note_table(&seen, relid) &&
			find_guard(&seen, relid);

		witness = seen;
		known = cacheable ? &witness : NULL;
		table = relid;
		known_changes = before;
	}
}

/* The witness of marks that are read from now on; NULL: do not cache them. */
const MarkWitness *
lockfence_mark_witness(void)
{
	if (unlikely(known_changes != lockfence_witness_changes))
		find_witness();
	return known;
}
