/*
 * retype.c
 *		The event trigger that warns of DDL which changes the text of values that
 *		name resources.
 *
 * Marks are kept by name.  If a column that a template names gets another type, or
 * a label of an enum is renamed, the rows get other names, which have no marks: any
 * token passes.  Only the administrator knows whether that was intended, so the
 * command goes on; the warning tells how to raise the marks of the new names.
 *
 * The trigger looks before the command, while the column still has its old type.
 * An object that it cannot find is one that the command reports as missing itself.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "names.h"
#include "visible.h"

PG_FUNCTION_INFO_V1(lockfence_watch_types);

static bool fences_are_known;	/* during this command */

/* Is the type one whose text is the number or the string itself? */
static bool
is_plain(Oid type)
{
	switch (type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case TEXTOID:
		case VARCHAROID:
			return true;
		default:
			return false;
	}
}

/* Digits after the point; -1: as many as the value has. */
static int
decimal_places(int32 typmod)
{
	return typmod < (int32) VARHDRSZ ? -1 : (typmod - VARHDRSZ) & 0x7ff;
}

/* Does the text of a value stay the same when it is cast to another type? */
static bool
keeps_text(Oid old, int32 old_mod, Oid new, int32 new_mod)
{
	old = getBaseTypeAndTypmod(old, &old_mod);
	new = getBaseTypeAndTypmod(new, &new_mod);
	if (old == new && old_mod == new_mod)
		return true;
	if (old == NUMERICOID && new == NUMERICOID)
		return decimal_places(new_mod) == -1 || decimal_places(old_mod) == decimal_places(new_mod);
	if (old == NUMERICOID && decimal_places(old_mod) == 0 && is_plain(new))
		return true;
	if (new == NUMERICOID && is_plain(old))
		return old != TEXTOID && old != VARCHAROID && decimal_places(new_mod) <= 0;
	if (new == TEXTOID || new == VARCHAROID)
		return is_plain(old) || old == NUMERICOID || old == UUIDOID ||
			get_typtype(old) == TYPTYPE_ENUM;
	return is_plain(old) && is_plain(new) && old != TEXTOID && old != VARCHAROID;
}

static void
warn(Oid relid, const char *column)
{
	const char *table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
												   get_rel_name(relid));

	ereport(WARNING,
			(errmsg("resources of table \"%s\" get other names", lockfence_visible(table)),
			 errdetail("Its fence names them by column \"%s\", and the text of its values changes. Marks of the old names no longer count.",
					   lockfence_visible(column)),
			 errhint("In the same transaction raise the marks of the new names: by lockfence.reconcile(%s) if the table has a token column, otherwise by lockfence.raise_mark(resource, token, reason).",
					 lockfence_visible(quote_literal_cstr(table)))));
}

/*
 * Does a fence name resources by the column?  The declarations are read once per
 * command, which may affect thousands of partitions, and only if needed.
 */
static bool
names_resources(Oid relid, const char *column)
{
	CHECK_FOR_INTERRUPTS();
	if (!fences_are_known)
		lockfence_read_declared();
	fences_are_known = true;
	return lockfence_names_by_column(relid, column);
}

/* Does the command give the column a type that prints its values differently? */
static bool
changes_text(Oid relid, const AlterTableCmd *cmd)
{
	const ColumnDef *column = castNode(ColumnDef, cmd->def);
	AttrNumber	attno = get_attnum(relid, cmd->name);
	Oid			old;
	int32		old_mod;
	Oid			collation;
	int32		new_mod;
	Type		new;
	bool		changes;

	if (attno <= 0)
		return false;
	new = LookupTypeName(NULL, column->typeName, &new_mod, true);
	if (new == NULL)
		return false;
	get_atttypetypmodcoll(relid, attno, &old, &old_mod, &collation);
	/* an expression may make anything of a value */
	changes = column->raw_default != NULL ||
		!keeps_text(old, old_mod, typeTypeId(new), new_mod);
	ReleaseSysCache(new);
	return changes;
}

/* A column changes its type, in the table and in its inheritance children. */
static void
watch_column(Oid relid, const AlterTableCmd *cmd)
{
	ListCell   *cell;

	if (!changes_text(relid, cmd))
		return;
	foreach(cell, find_all_inheritors(relid, NoLock, NULL))
	{
		if (names_resources(lfirst_oid(cell), cmd->name))
			warn(lfirst_oid(cell), cmd->name);
	}
}

/* Add the types that contain a type, and warn of the columns that have it. */
static List *
watch_dependent(Form_pg_depend dependent, List *types)
{
	const char *column;
	Oid			row_type;

	if (dependent->classid == TypeRelationId)
		return list_append_unique_oid(types, dependent->objid);
	if (dependent->classid != RelationRelationId || dependent->objsubid <= 0)
		return types;
	column = get_attname(dependent->objid, dependent->objsubid, true);
	if (column != NULL && names_resources(dependent->objid, column))
		warn(dependent->objid, column);
	row_type = get_rel_type_id(dependent->objid);
	return OidIsValid(row_type) ? list_append_unique_oid(types, row_type) : types;
}

/* Values of a type print differently, and so do those of domains, arrays and rows of it. */
static void
watch_type(Oid type)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	List	   *types = list_make1_oid(type);

	for (int i = 0; i < list_length(types); i++)
	{
		ScanKeyData keys[2];
		SysScanDesc scan;
		HeapTuple	tuple;

		CHECK_FOR_INTERRUPTS();
		ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
					ObjectIdGetDatum(TypeRelationId));
		ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
					ObjectIdGetDatum(list_nth_oid(types, i)));
		scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, keys);
		while (HeapTupleIsValid(tuple = systable_getnext(scan)))
			types = watch_dependent((Form_pg_depend) GETSTRUCT(tuple), types);
		systable_endscan(scan);
	}
	table_close(depend, AccessShareLock);
}

/* ALTER TABLE, and ALTER TYPE of a composite type. */
static void
watch_table(const AlterTableStmt *statement)
{
	Oid			relid = RangeVarGetRelid(statement->relation, NoLock, true);
	bool		other_rows = false;
	ListCell   *cell;

	if (!OidIsValid(relid))
		return;
	foreach(cell, statement->cmds)
	{
		const AlterTableCmd *cmd = lfirst_node(AlterTableCmd, cell);

		if (cmd->subtype == AT_AlterColumnType)
			watch_column(relid, cmd);
		other_rows = other_rows || cmd->subtype == AT_AlterColumnType ||
			cmd->subtype == AT_AddColumn || cmd->subtype == AT_DropColumn;
	}
	/* a row is printed with all its columns */
	if (other_rows && OidIsValid(get_rel_type_id(relid)))
		watch_type(get_rel_type_id(relid));
}

/* ALTER TYPE ... RENAME VALUE */
static void
watch_enum(const AlterEnumStmt *statement)
{
	Type		type = LookupTypeName(NULL, makeTypeNameFromNameList(statement->typeName), NULL, true);

	if (type == NULL)
		return;
	watch_type(typeTypeId(type));
	ReleaseSysCache(type);
}

/* ON ddl_command_start */
Datum
lockfence_watch_types(PG_FUNCTION_ARGS)
{
	Node	   *statement;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function must be called as an event trigger")));
	fences_are_known = false;
	statement = ((EventTriggerData *) fcinfo->context)->parsetree;
	if (IsA(statement, AlterTableStmt))
		watch_table((AlterTableStmt *) statement);
	else if (IsA(statement, AlterEnumStmt) && ((AlterEnumStmt *) statement)->oldVal != NULL)
		watch_enum((AlterEnumStmt *) statement);
	PG_RETURN_NULL();
}
