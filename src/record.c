/*
 * record.c
 *		What was fenced, on record: lockfence.fenced, beside the marks.
 *
 * Marks belong to resources, and so tell nothing of the tables that they stand
 * for.  A table that comes from elsewhere (part of a dump, a partition that was
 * attached, a copy of the schema) brings its guards and not its marks, and its
 * guards would take "no mark" for "no holder yet".  So a fence decides only if
 * its table is on record: attach() puts it there, reconcile() does once the
 * marks are there again, a dump of the whole database brings the record along
 * with the marks, and nothing else does.  A row fence has its marks in its rows
 * and needs no record to decide; it has one so that verify() notices if its guards
 * are gone.
 *
 * A partition is put on record automatically if it has no rows yet and its parent
 * is on record: there is nothing in it that a mark elsewhere could stand for.
 * The same is true under a fence of one resource that no row names, whose mark is
 * the parent's.  Otherwise a partition that is attached with rows loses its record,
 * and so does one that is detached.  An event trigger does that; the role that makes
 * a partition needs no privilege for it, as the record is read and written directly,
 * like the marks.
 *
 * Whether a table is on record is looked up when its fence is parsed, and kept
 * with it (trigarg.c).  Every writer of the record invalidates the relcache entry
 * of the table in question, in the transaction that writes, so that a session
 * which parsed the fence before that one's end parses it again.  The look-up
 * sees what is committed by then or is this transaction's own, and takes no
 * lock of SERIALIZABLE.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "replication/logicalworker.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "args.h"
#include "check.h"
#include "compat.h"
#include "fencedef.h"
#include "guardtype.h"
#include "intact.h"
#include "lockfence.h"
#include "record.h"
#include "refuse.h"
#include "relation.h"
#include "visible.h"

/* columns of lockfence.fenced */
#define FENCED_ATTNO_TARGET		1
#define FENCED_NATTS			2

PG_FUNCTION_INFO_V1(lockfence_record_fence);
PG_FUNCTION_INFO_V1(lockfence_forget_fence);
PG_FUNCTION_INFO_V1(lockfence_guard_record);
PG_FUNCTION_INFO_V1(lockfence_follow_partitions);

/*
 * Which table that was when it was looked up last, for relcache callbacks alone: they
 * cannot look anything up.
 */
static Oid	record_relid = InvalidOid;

/* The table of records; InvalidOid under the SQL of a version that had none. */
static Oid
find_record(void)
{
	Oid			schema = get_namespace_oid(LOCKFENCE_SCHEMA, true);

	record_relid = OidIsValid(schema) ? get_relname_relid("fenced", schema) : InvalidOid;
	return record_relid;
}

/* The same, opened; NULL: there is none. */
static Relation
open_record(LOCKMODE mode)
{
	Oid			relid = find_record();

	return OidIsValid(relid) ? table_open(relid, mode) : NULL;
}

/* Is that the table of records?  A change of it may be a change of any record. */
bool
lockfence_is_record(Oid relid)
{
	return relid == record_relid && OidIsValid(relid);
}

/* Read the record of a table; NULL: there is none. */
static HeapTuple
read_record(Relation record, Oid target)
{
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, FENCED_ATTNO_TARGET, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(target));
	scan = systable_beginscan(record, lockfence_relation_oid("fenced_pkey"), true,
							  SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	return tuple;
}

/*
 * Is the table on record?  If there is no table of records, all are: under the SQL
 * of a version without it the library goes on as before.
 */
static bool
is_on_record(Oid target)
{
	Relation	record = open_record(AccessShareLock);
	bool		found;

	if (record == NULL)
		return true;
	found = read_record(record, target) != NULL;
	table_close(record, AccessShareLock);
	return found;
}

/* Does the fence need a record that its table does not have? */
bool
lockfence_lacks_record(const Fence *fence, Relation rel)
{
	/* a temporary table comes from nowhere else */
	return fence->resource != NULL &&
		rel->rd_rel->relpersistence != RELPERSISTENCE_TEMP &&
		!is_on_record(RelationGetRelid(rel));
}

/* The arguments of the table's guard of that type, as an array of text; 0: it has none. */
static Datum
guard_arguments(Relation rel, int16 type)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger		trigger = rel->trigdesc->triggers[i];
		Datum	   *elements = palloc(Max(trigger.tgnargs, 1) * sizeof(Datum));

		/* first: what is looked up may rebuild the relcache entry, with its arguments */
		for (int n = 0; n < trigger.tgnargs; n++)
			elements[n] = CStringGetTextDatum(trigger.tgargs[n]);
		if (lockfence_guard_type(trigger.tgfoid) == type)
			return PointerGetDatum(construct_array(elements, trigger.tgnargs, TEXTOID,
												   -1, false, TYPALIGN_INT));
	}
	return (Datum) 0;
}

/* The arguments of the guard that decides on the table's writes; 0: none does. */
static Datum
fence_arguments(Relation rel)
{
	Datum		arguments = guard_arguments(rel, GUARD_ROW_TYPE);

	return arguments != (Datum) 0 ? arguments : guard_arguments(rel, GUARD_STATEMENT_TYPE);
}

/*
 * Is the table fenced, and not on record?  Asked about parents of a table that is
 * written to, against the order in which DDL locks them: so a parent that cannot be
 * locked at once counts as another.
 */
static bool
is_unrecorded(Oid relid)
{
	Relation	rel;
	bool		unrecorded;

	if (!OidIsValid(relid) || is_on_record(relid) ||
		!ConditionalLockRelationOid(relid, AccessShareLock))
		return false;
	rel = try_relation_open(relid, NoLock);
	unrecorded = rel != NULL && fence_arguments(rel) != (Datum) 0;
	if (rel != NULL)
		relation_close(rel, NoLock);
	UnlockRelationOid(relid, AccessShareLock);
	return unrecorded;
}

/* The table to reconcile: the topmost that lacks its record, for all below it. */
static Oid
find_unrecorded(Oid relid)
{
	while (get_rel_relispartition(relid))
	{
		Oid			parent = lockfence_partition_parent(relid);

		if (!is_unrecorded(parent))
			break;
		relid = parent;
	}
	return relid;
}

/* Refuse a write to a table that should be on record, and is not. */
bool
lockfence_try_record(const Fence *fence, const FencedWrite *write)
{
	/* a subscriber takes what the publisher has decided */
	if (IsLogicalWorker())
		return true;
	lockfence_refuse_unrecorded(write, find_unrecorded(RelationGetRelid(write->rel)),
								fence->token_column != NULL);
	return false;
}

/* Put the table on record with a guard's arguments, unless it is; true if it was not. */
static bool
put_record(Relation rel, Datum arguments)
{
	NullableDatum columns[FENCED_NATTS] = {
		{.value = ObjectIdGetDatum(RelationGetRelid(rel))},
		{.value = arguments}
	};
	Relation	record;
	bool		missing;

	if (arguments == (Datum) 0 || is_on_record(RelationGetRelid(rel)))
		return false;
	PreventCommandIfReadOnly("a record of a fenced table");
	/* against other sessions that do the same; only DDL and VACUUM wait for that */
	LockRelationOid(RelationGetRelid(rel), ShareUpdateExclusiveLock);
	record = open_record(RowExclusiveLock);
	lockfence_require_intact(record);
	missing = read_record(record, RelationGetRelid(rel)) == NULL;
	if (missing)
	{
		CatalogTupleInsert(record, lockfence_form_row(record, columns, FENCED_NATTS));
		CacheInvalidateRelcache(rel);
		CommandCounterIncrement();
	}
	table_close(record, NoLock);
	return missing;
}

/* Take the table off the record; true if it was there. */
static bool
remove_record(Oid target)
{
	Relation	record = open_record(RowExclusiveLock);
	HeapTuple	tuple;

	if (record == NULL)
		return false;
	lockfence_require_intact(record);
	tuple = read_record(record, target);
	if (tuple != NULL)
	{
		CatalogTupleDelete(record, &tuple->t_self);
		CacheInvalidateRelcacheByRelid(target);
		CommandCounterIncrement();
	}
	table_close(record, NoLock);
	return tuple != NULL;
}

/* Open a table that the caller of a function has to own. */
static Relation
open_owned(FunctionCallInfo fcinfo)
{
	Relation	rel = lockfence_open_table(PG_GETARG_OID(0), AccessShareLock);

	if (!lockfence_owns_relation(RelationGetRelid(rel), GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE,
					   lockfence_visible(RelationGetRelationName(rel)));
	return rel;
}

/* _record_fence(target): whether it was put on record, which it is now if it has a guard */
Datum
lockfence_record_fence(PG_FUNCTION_ARGS)
{
	Relation	rel = open_owned(fcinfo);
	bool		is_new = rel->rd_rel->relpersistence != RELPERSISTENCE_TEMP &&
		put_record(rel, fence_arguments(rel));

	table_close(rel, NoLock);
	PG_RETURN_BOOL(is_new);
}

/* _forget_fence(target): whether it was on record, which it no longer is */
Datum
lockfence_forget_fence(PG_FUNCTION_ARGS)
{
	Relation	rel = open_owned(fcinfo);
	bool		was = remove_record(RelationGetRelid(rel));

	table_close(rel, NoLock);
	PG_RETURN_BOOL(was);
}

/*
 * Row trigger on lockfence.fenced, for what comes by DML: a data restore, a
 * superuser.  A record that is there already stays, one of no table is dropped,
 * and every session is told of the others.
 */
Datum
lockfence_guard_record(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Relation	record;
	HeapTuple	tuple;
	bool		isnull;
	Oid			target;

	lockfence_require_trigger(fcinfo);
	record = trigger->tg_relation;
	if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_UNFENCEABLE_OPERATION),
				 errmsg("cannot update lockfence.fenced"),
				 errhint("Use lockfence.reconcile() to put a table on record, and lockfence.detach() to take it off."),
				 errtable(record)));
	tuple = trigger->tg_trigtuple;
	target = DatumGetObjectId(heap_getattr(tuple, FENCED_ATTNO_TARGET,
										   RelationGetDescr(record), &isnull));
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(target)))
		CacheInvalidateRelcacheByRelid(target);
	else if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		return PointerGetDatum(NULL);
	if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event) && read_record(record, target) != NULL)
		return PointerGetDatum(NULL);
	return PointerGetDatum(tuple);
}

/* Is there nothing in the table?  What was deleted counts until it is gone from its file. */
static bool
is_empty(Relation rel)
{
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return true;
	return rel->rd_rel->relkind == RELKIND_RELATION && RelationGetNumberOfBlocks(rel) == 0;
}

/* The parent that a partition is fenced by, and locks; NULL: none. */
static Relation
open_parent(Oid relid)
{
	return get_rel_relispartition(relid) ?
		table_open(lockfence_partition_parent(relid), AccessShareLock) : NULL;
}

/* Is there a fence on the table that is not as the parent's? */
static bool
has_other_fence(Relation rel, Datum arguments)
{
	Datum		own = fence_arguments(rel);

	return own != (Datum) 0 && !datumIsEqual(own, arguments, false, -1);
}

/* A partition of a table that is fenced by its rows; made: by CREATE TABLE. */
static void
settle_partition(Relation rel, bool recorded, bool made)
{
	if (recorded && is_empty(rel))
		(void) put_record(rel, guard_arguments(rel, GUARD_ROW_TYPE));
	else if (!made)				/* IF NOT EXISTS comes here with any table */
		(void) remove_record(RelationGetRelid(rel));
}

/* A table became a partition, with its own partitions. */
static void
follow_into(Oid relid, bool made)
{
	Relation	parent = open_parent(relid);
	bool		recorded = parent != NULL && is_on_record(RelationGetRelid(parent));
	bool		by_row = parent != NULL && guard_arguments(parent, GUARD_ROW_TYPE) != (Datum) 0;
	Datum		arguments = parent != NULL ? guard_arguments(parent, GUARD_STATEMENT_TYPE) : (Datum) 0;
	ListCell   *lc;

	if (parent == NULL)
		return;
	foreach(lc, find_all_inheritors(relid, AccessShareLock, NULL))
	{
		Relation	rel = table_open(lfirst_oid(lc), NoLock);

		if (by_row)
			settle_partition(rel, recorded, made);
		/* its resource is the parent's, and so is the mark */
		else if (recorded && arguments != (Datum) 0 && !has_other_fence(rel, arguments))
			(void) put_record(rel, arguments);
		table_close(rel, NoLock);
	}
	table_close(parent, NoLock);
}

/* A table, with its own partitions, is no longer a partition. */
static void
follow_out(Oid relid)
{
	ListCell   *lc;

	foreach(lc, find_all_inheritors(relid, AccessShareLock, NULL))
	{
		Relation	rel = table_open(lfirst_oid(lc), NoLock);

		if (fence_arguments(rel) == (Datum) 0)
			(void) remove_record(RelationGetRelid(rel));
		table_close(rel, NoLock);
	}
}

/* What ALTER TABLE has done to partitions. */
static void
follow_alter_table(const AlterTableStmt *statement)
{
	ListCell   *lc;

	foreach(lc, statement->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, lc);
		bool		attaches = command->subtype == AT_AttachPartition;
		Oid			relid;

		if (!attaches && !lockfence_is_detach(command->subtype))
			continue;
		relid = RangeVarGetRelid(castNode(PartitionCmd, command->def)->name,
								 AccessShareLock, true);
		if (OidIsValid(relid) && attaches)
			follow_into(relid, false);
		else if (OidIsValid(relid))
			follow_out(relid);
	}
}

/* What CREATE TABLE has made, or has found and not locked. */
static void
follow_create_table(const CreateStmt *statement)
{
	Oid			relid = statement->partbound != NULL ?
		RangeVarGetRelid(statement->relation, AccessShareLock, true) : InvalidOid;

	if (OidIsValid(relid))
		follow_into(relid, true);
}

/* What a command has done to partitions. */
static void
follow_command(const Node *statement)
{
	if (IsA(statement, AlterTableStmt))
		follow_alter_table((const AlterTableStmt *) statement);
	else if (IsA(statement, CreateStmt))
		follow_create_table((const CreateStmt *) statement);
}

/*
 * Event trigger, ON ddl_command_end: keep partitions on record with their parents, or
 * off it.  DETACH PARTITION CONCURRENTLY comes here in its second transaction, without
 * the snapshot that a row of the record takes to be written.
 */
Datum
lockfence_follow_partitions(PG_FUNCTION_ARGS)
{
	bool		lacks_snapshot = !ActiveSnapshotSet();

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function must be called as an event trigger")));
	if (!OidIsValid(find_record()))
		PG_RETURN_NULL();
	if (lacks_snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	follow_command(((EventTriggerData *) fcinfo->context)->parsetree);
	if (lacks_snapshot)
		PopActiveSnapshot();
	PG_RETURN_NULL();
}
