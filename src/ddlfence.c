/*
 * ddlfence.c
 *		The event trigger of fence_ddl(): DDL passes under a grant alone.
 *
 * The resource is on record in lockfence.ddl_fence.  Only a token that is presented
 * for it by name counts: what a transaction presents for whatever it writes is of
 * another lock, and would raise the mark of this one whenever such a transaction
 * happens to make a table.
 *
 * A command that commits on its way, as CREATE INDEX CONCURRENTLY does, lets go of the
 * resource at its first commit.  It must not hold it longer: it waits for transactions
 * with older snapshots, and that of the next holder has one while it waits for the
 * resource.  So it is judged again when it ends, in the transaction that completes it.
 *
 * The commands that a script of an extension runs are part of the one that runs the
 * script, which has been judged.
 *
 * Nothing here evaluates what the command contains: names are looked up, as the
 * command will do, and no more.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"
#include "replication/logicalworker.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "advisory.h"
#include "bypass.h"
#include "check.h"
#include "compat.h"
#include "ddlfence.h"
#include "fence.h"
#include "intact.h"
#include "latest.h"
#include "lockfence.h"
#include "presented.h"
#include "refuse.h"
#include "relation.h"
#include "stats.h"

PG_FUNCTION_INFO_V1(lockfence_admit_ddl);

/* The transaction in which a command was last judged; no other has its number, in this session. */
static LocalTransactionId judged_in = InvalidLocalTransactionId;

/* Does the command make something that goes with the session? */
static bool
makes_temporary(const RangeVar *name)
{
	return name->relpersistence == RELPERSISTENCE_TEMP ||
		(name->schemaname != NULL && strcmp(name->schemaname, "pg_temp") == 0);
}

/* Is what the command names there, and goes with the session? */
static bool
is_temporary(const RangeVar *name)
{
	Oid			relid = name ? RangeVarGetRelid(name, NoLock, true) : InvalidOid;

	return OidIsValid(relid) && get_rel_persistence(relid) == RELPERSISTENCE_TEMP;
}

/* Are these names of relations, of temporary ones alone? */
static bool
are_temporary(const DropStmt *drop)
{
	ListCell   *lc;

	if (drop->removeType != OBJECT_TABLE && drop->removeType != OBJECT_VIEW &&
		drop->removeType != OBJECT_SEQUENCE && drop->removeType != OBJECT_INDEX)
		return false;
	foreach(lc, drop->objects)
	{
		if (!is_temporary(makeRangeVarFromNameList(lfirst(lc))))
			return false;
	}
	return true;
}

/* Does the command concern relations that go with the session, and no others? */
static bool
is_of_session(Node *command)
{
	switch (nodeTag(command))
	{
		case T_CreateStmt:
			return makes_temporary(((CreateStmt *) command)->relation);
		case T_CreateTableAsStmt:
			return makes_temporary(((CreateTableAsStmt *) command)->into->rel);
		case T_ViewStmt:
			return makes_temporary(((ViewStmt *) command)->view);
		case T_CreateSeqStmt:
			return makes_temporary(((CreateSeqStmt *) command)->sequence);
		case T_AlterTableStmt:
			return is_temporary(((AlterTableStmt *) command)->relation);
		case T_AlterSeqStmt:
			return is_temporary(((AlterSeqStmt *) command)->sequence);
		case T_IndexStmt:
			return is_temporary(((IndexStmt *) command)->relation);
		case T_CreateTrigStmt:
			return is_temporary(((CreateTrigStmt *) command)->relation);
		case T_RenameStmt:
			return is_temporary(((RenameStmt *) command)->relation);
		case T_DropStmt:
			return are_temporary((DropStmt *) command);
		default:
			return false;
	}
}

/* Does the command change no definition, but only how or with which rows it is stored? */
static bool
is_maintenance(Node *command)
{
	return IsA(command, RefreshMatViewStmt) || IsA(command, ReindexStmt);
}

/*
 * Open the record; NULL: an older version of the extension has no such table.  It is
 * an error that the extension is gone, as after a wait for DROP EXTENSION.
 */
static Relation
open_record(void)
{
	Relation	rel;

	do
	{
		Oid			relid = get_relname_relid("ddl_fence", get_namespace_oid(LOCKFENCE_SCHEMA, true));

		if (!OidIsValid(relid))
		{
			(void) lockfence_relation_oid("mark");
			return NULL;
		}
		rel = try_table_open(relid, AccessShareLock);
	} while (rel == NULL);
	return rel;
}

/* The resources on record, as strings: one, unless a restore has brought another. */
List *
lockfence_ddl_resources(void)
{
	Relation	rel = open_record();
	List	   *resources = NIL;
	LatestScan	scan;
	HeapTuple	tuple;

	if (rel == NULL)
		return NIL;
	lockfence_require_readable(rel);
	lockfence_latest_begin(&scan, rel, InvalidOid, 0, NULL);
	while (HeapTupleIsValid(tuple = lockfence_latest_next(&scan)))
	{
		bool		isnull;

		resources = lappend(resources,
							TextDatumGetCString(heap_getattr(tuple, 1, RelationGetDescr(rel), &isnull)));
	}
	lockfence_latest_end(&scan);
	table_close(rel, AccessShareLock);
	return resources;
}

/* May the command go on, which needs a grant of the resource? */
static void
judge_by_resource(const char *resource, bool advisory)
{
	FenceCheck	check = {.write = {.resource = resource,.is_ddl = true,.advisory = advisory}};
	PresentedTokens tokens = lockfence_named_tokens(resource);
	FenceToken	previous;

	if (lockfence_admit(&check, &tokens, &previous) != 0)
		lockfence_count(NULL, LOCKFENCE_ACCEPTED);
}

/* The same by what is on record; write: a FencedWrite. */
static void
judge_by_record(void *write)
{
	List	   *resources = lockfence_ddl_resources();
	ListCell   *lc;

	if (resources == NIL)
		lockfence_refuse_unrecorded_ddl();
	foreach(lc, resources)
		judge_by_resource(lfirst(lc), ((FencedWrite *) write)->advisory);
}

static void
judge(void)
{
	FencedWrite write = {.is_ddl = true,.advisory = lockfence_is_advisory(NULL)};

	if (write.advisory)
		(void) lockfence_decide_advisorily(&write, NULL, judge_by_record, &write);
	else
		judge_by_record(&write);
}

/* Event trigger: before and after each command */
Datum
lockfence_admit_ddl(PG_FUNCTION_ARGS)
{
	EventTriggerData *trigger = (EventTriggerData *) fcinfo->context;
	LocalTransactionId now = LOCKFENCE_PROC_LXID(MyProc);
	bool		begins;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("this function is called by an event trigger only")));
	begins = strcmp(trigger->event, "ddl_command_start") == 0;
	if (creating_extension || IsLogicalWorker() || (!begins && judged_in == now) ||
		is_maintenance(trigger->parsetree) || is_of_session(trigger->parsetree))
		;
	else if (!lockfence_is_bypassed(NULL))
		judge();
	judged_in = now;
	PG_RETURN_NULL();
}
