/*
 * partitionddl.c
 *		Commands that make partitions of fenced tables and would fail by the guards, told
 *		before they begin in words that say what to do.
 *
 * PostgreSQL creates the row guard of a partitioned table on each new partition as well,
 * as the role that runs the command.  That role must have EXECUTE on the guard's function,
 * and the partition no trigger of that name.
 *
 * Nothing here is a check that anything relies on: PostgreSQL makes its own, under locks.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "guardtype.h"
#include "lockfence.h"
#include "partitionddl.h"
#include "visible.h"

/* The row guard of a table. */
typedef struct Guard
{
	Oid			function;		/* InvalidOid: there is none */
	NameData	name;
} Guard;

static Guard
find_guard(Oid relid)
{
	Relation	triggers = table_open(TriggerRelationId, AccessShareLock);
	Guard		guard = {InvalidOid};
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(triggers, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (!OidIsValid(guard.function) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(tuple);

		if (lockfence_guard_type(trigger->tgfoid) != GUARD_ROW_TYPE)
			continue;
		guard.function = trigger->tgfoid;
		guard.name = trigger->tgname;
	}
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);
	return guard;
}

/* The role may not create the guard that the partition of its table gets. */
static void
refuse_role(Oid parent)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to make a partition of fenced table \"%s\"",
					lockfence_visible(get_rel_name(parent))),
			 errdetail("The partition gets the guard of the table, and role \"%s\" may not execute lockfence.guard_row().",
					   lockfence_visible(GetUserNameFromId(GetUserId(), true))),
			 errhint("Have a role make it that may, such as a superuser; or have an administrator grant EXECUTE on lockfence.guard_row() to a role that may raise the marks of all resources.")));
}

/* The partition has a fence of its own. */
static void
refuse_fenced(Oid parent, Oid partition)
{
	char	   *table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(partition)),
												   get_rel_name(partition));

	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("table \"%s\" is already fenced", lockfence_visible(get_rel_name(partition))),
			 errdetail("As a partition it gets the guard of table \"%s\", which would be its second.",
					   lockfence_visible(get_rel_name(parent))),
			 errhint("In one transaction call lockfence.detach(%s), attach it, and call lockfence.reconcile(%s), which puts it on record.",
					 lockfence_visible(quote_literal_cstr(table)),
					 lockfence_visible(quote_literal_cstr(table)))));
}

/* A table is about to become a partition; InvalidOid: it is about to be created. */
static void
before_partition(Oid parent, Oid partition)
{
	Guard		guard = {InvalidOid};

	/* what fails for another reason has its own error */
	if (OidIsValid(parent) && get_rel_relkind(parent) == RELKIND_PARTITIONED_TABLE)
		guard = find_guard(parent);
	if (!OidIsValid(guard.function) || !lockfence_owns_relation(parent, GetUserId()))
		return;
	if (!DatumGetBool(DirectFunctionCall2(has_function_privilege_id, ObjectIdGetDatum(guard.function),
										  CStringGetTextDatum("EXECUTE"))))
		refuse_role(parent);
	if (OidIsValid(partition) && strcmp(NameStr(guard.name), NameStr(find_guard(partition).name)) == 0)
		refuse_fenced(parent, partition);
}

static void
before_alter_table(const AlterTableStmt *statement)
{
	ListCell   *lc;

	foreach(lc, statement->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, lc);
		Oid			partition;

		if (command->subtype != AT_AttachPartition)
			continue;
		partition = RangeVarGetRelid(castNode(PartitionCmd, command->def)->name, NoLock, true);
		if (OidIsValid(partition))
			before_partition(RangeVarGetRelid(statement->relation, NoLock, true), partition);
	}
}

static void
before_create_table(const CreateStmt *statement)
{
	if (statement->partbound == NULL || OidIsValid(RangeVarGetRelid(statement->relation, NoLock, true)))
		return;
	before_partition(RangeVarGetRelid(linitial_node(RangeVar, statement->inhRelations), NoLock, true),
					 InvalidOid);
}

/* A command begins; an error if it would make a partition and fail by the guard of its parent. */
void
lockfence_before_partition(const Node *command)
{
	if (IsA(command, AlterTableStmt))
		before_alter_table((const AlterTableStmt *) command);
	else if (IsA(command, CreateStmt))
		before_create_table((const CreateStmt *) command);
}
