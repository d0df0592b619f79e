/*
 * intact.c
 *		The tables that the fence writes to directly: are they as the extension
 *		made them?
 *
 * A direct write fires no trigger, follows no rule, and checks and computes nothing
 * that other tools or roles have put on the table.  So a tool that copies a table
 * by a log trigger, and then replaces the table by the copy, would lose marks that
 * were acknowledged; an index on an expression or on some rows would get wrong
 * entries, or crash the server.  DDL that would add such things is refused (ddl.c);
 * if one is there nevertheless, the fence does not write.
 *
 * It does not keep the fence from accepting a token that equals the mark, which
 * writes nothing: the mark was there before, and whatever replaces the table
 * waits for the transactions that have read it.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "nodes/execnodes.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "intact.h"
#include "lockfence.h"
#include "relation.h"
#include "rows.h"

PG_FUNCTION_INFO_V1(lockfence_foreign_things);

/* A table that is written to directly. */
typedef struct OwnTable
{
	const char *name;
	AttrNumber	key;			/* the column of its primary key */
	int			natts;
	Oid			types[5];		/* of its columns; the base type of a domain;
								 * InvalidOid: a type of the extension */
	const char *triggers[2];	/* the functions that they call */
	const char *check;			/* its constraint, or NULL */
} OwnTable;

static const OwnTable own_tables[] = {
	{"mark", LOCKFENCE_MARK_RESOURCE, 3, {INT8OID, TIMESTAMPTZOID, TEXTOID},
	{"guard_mark", "guard_marks"}, NULL},
	{"fenced", 1, 2, {InvalidOid, TEXTARRAYOID}, {"guard_record", "guard_record"}, NULL},
	{"state", 1, 2, {TEXTOID, INT8OID}, {"merge_state", "state_changed"}, "state_is_valid"},
	/* only read, and by administrators written to */
	{"ddl_fence", 1, 1, {TEXTOID}, {"", ""}, NULL},
	/* of lockfence_lease */
	{"lease", 4, 5, {INT8OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID, TEXTOID}, {"", ""}, NULL},
};

/* What was found on a table. */
typedef struct Inspection
{
	Relation	rel;
	const OwnTable *own;
	List	   *things;			/* of ForeignThing */
} Inspection;

static void
add_thing(Inspection *inspection, const char *kind, const char *name, ThingHarm harm)
{
	ForeignThing *thing = inspection->things == NIL ? NULL : llast(inspection->things);

	/* a foreign key has several triggers */
	if (name != NULL && thing != NULL && strcmp(thing->kind, kind) == 0 && strcmp(thing->name, name) == 0)
		return;
	thing = palloc(sizeof(ForeignThing));
	thing->relid = RelationGetRelid(inspection->rel);
	thing->table = inspection->own->name;
	thing->kind = kind;
	thing->name = name == NULL ? NULL : pstrdup(name);
	thing->harm = harm;
	inspection->things = lappend(inspection->things, thing);
}

/* Is the function one that the table's own triggers call? */
static bool
is_own_function(const OwnTable *own, Oid function)
{
	char	   *name;

	if (get_func_namespace(function) != get_namespace_oid(LOCKFENCE_SCHEMA, true))
		return false;
	name = get_func_name(function);
	return name != NULL &&
		(strcmp(name, own->triggers[0]) == 0 || strcmp(name, own->triggers[1]) == 0);
}

/*
 * A foreign key is found by its triggers, on either of its tables.  The relcache
 * entry's triggers are freed when it is rebuilt, which any lookup may cause.
 */
static void
inspect_triggers(Inspection *inspection)
{
	TriggerDesc *triggers = CopyTriggerDesc(inspection->rel->trigdesc);

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];

		if (trigger->tgisinternal && OidIsValid(trigger->tgconstraint))
			add_thing(inspection, "constraint", get_constraint_name(trigger->tgconstraint),
					  THING_SPOILS_WRITES);
		else if (!is_own_function(inspection->own, trigger->tgfoid))
			add_thing(inspection, "trigger", trigger->tgname, THING_SPOILS_WRITES);
	}
}

static void
inspect_rules(Inspection *inspection)
{
	CatCList   *rules = SearchSysCacheList1(RULERELNAME,
											ObjectIdGetDatum(RelationGetRelid(inspection->rel)));

	for (int i = 0; i < rules->n_members; i++)
		add_thing(inspection, "rule",
				  NameStr(((Form_pg_rewrite) GETSTRUCT(&rules->members[i]->tuple))->rulename),
				  THING_SPOILS_WRITES);
	ReleaseSysCacheList(rules);
}

/* Has the index an entry for every row, by columns alone, made immediately? */
static bool
index_is_plain(HeapTuple tuple)
{
	return ((Form_pg_index) GETSTRUCT(tuple))->indimmediate &&
		!((Form_pg_index) GETSTRUCT(tuple))->indisexclusion &&
		heap_attisnull(tuple, Anum_pg_index_indexprs, NULL) &&
		heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
}

/* Is the index's first column sorted as the fence looks names up? */
bool
lockfence_index_is_sorted(HeapTuple tuple)
{
	bool		isnull;
	Datum		collations = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indcollation,
											 &isnull);

	return !isnull &&
		((oidvector *) DatumGetPointer(collations))->values[0] == C_COLLATION_OID;
}

/*
 * An index on the key alone may have been created again under another name, as by
 * REINDEX CONCURRENTLY; any other index prevents heap-only updates.
 */
static void
inspect_index(Inspection *inspection, Oid index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;
	bool		plain;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_index) GETSTRUCT(tuple);
	plain = index_is_plain(tuple);
	if (!plain || form->indnatts != 1 || form->indkey.values[0] != inspection->own->key ||
		(inspection->own->types[inspection->own->key - 1] == TEXTOID &&
		 !lockfence_index_is_sorted(tuple)))
		add_thing(inspection, "index", get_rel_name(index),
				  plain ? THING_IS_HARMLESS : THING_SPOILS_WRITES);
	ReleaseSysCache(tuple);
}

static void
inspect_indexes(Inspection *inspection)
{
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(inspection->rel))
		inspect_index(inspection, lfirst_oid(lc));
}

static void
inspect_constraints(Inspection *inspection)
{
	TupleConstr *constr = RelationGetDescr(inspection->rel)->constr;

	for (int i = 0; constr != NULL && i < constr->num_check; i++)
	{
		if (inspection->own->check == NULL ||
			strcmp(constr->check[i].ccname, inspection->own->check) != 0)
			add_thing(inspection, "constraint", constr->check[i].ccname,
					  THING_SPOILS_WRITES);
	}
}

/*
 * Does the column, which the extension made, have the expected type and collation?
 * Names are sorted and compared byte by byte: by another collation some would not be
 * found.
 */
static bool
column_is_own(const OwnTable *own, Form_pg_attribute column)
{
	Oid			type = own->types[column->attnum - 1];

	return !column->attisdropped && !column->attgenerated &&
		(getBaseType(column->atttypid) == type ||
		 (!OidIsValid(type) && column->atttypid >= FirstNormalObjectId)) &&
		(type != TEXTOID || column->attcollation == C_COLLATION_OID);
}

/* An additional column stays null, so it must be nullable. */
static void
inspect_columns(Inspection *inspection)
{
	TupleDesc	tupdesc = RelationGetDescr(inspection->rel);
	const OwnTable *own = inspection->own;

	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(tupdesc, i);

		if (i < own->natts)
		{
			if (!column_is_own(own, column))
				add_thing(inspection, "column", NameStr(column->attname), THING_SPOILS_READS);
		}
		else if (!column->attisdropped)
			add_thing(inspection, "column", NameStr(column->attname),
					  column->attnotnull || column->attgenerated ?
					  THING_SPOILS_WRITES : THING_IS_HARMLESS);
	}
}

/* How the rows are stored, which roles see them, and the table's parents and children. */
static void
inspect_class(Inspection *inspection)
{
	Form_pg_class form = inspection->rel->rd_rel;
	Oid			relid = RelationGetRelid(inspection->rel);

	if (form->relam != HEAP_TABLE_AM_OID)
		add_thing(inspection, "access method", get_am_name(form->relam), THING_SPOILS_READS);
	if (form->relpersistence != RELPERSISTENCE_PERMANENT)
		add_thing(inspection, "storage that a crash empties", NULL, THING_SPOILS_WRITES);
	if (form->relrowsecurity || form->relforcerowsecurity)
		add_thing(inspection, "row-level security", NULL, THING_IS_HARMLESS);
	if (form->relispartition)
		add_thing(inspection, "a place among the partitions of another table", NULL, THING_SPOILS_WRITES);
	else if (has_superclass(relid))
		add_thing(inspection, "a table that it inherits from", NULL, THING_IS_HARMLESS);
	if (find_inheritance_children(relid, NoLock) != NIL)
		add_thing(inspection, "a table that inherits from it", NULL, THING_IS_HARMLESS);
}

static List *
inspect(Relation rel, const OwnTable *own)
{
	Inspection	inspection = {.rel = rel, .own = own};

	inspect_columns(&inspection);
	inspect_class(&inspection);
	inspect_constraints(&inspection);
	inspect_indexes(&inspection);
	inspect_rules(&inspection);
	inspect_triggers(&inspection);
	return inspection.things;
}

/* The name of one of the tables without its schema; NULL if it is none of them. */
const char *
lockfence_own_table(Oid relid)
{
	Oid			schema = get_namespace_oid(LOCKFENCE_SCHEMA, true);

	for (int i = 0; OidIsValid(schema) && OidIsValid(relid) && i < lengthof(own_tables); i++)
	{
		if (get_relname_relid(own_tables[i].name, schema) == relid)
			return own_tables[i].name;
	}
	return NULL;
}

/*
 * The things on the tables that are not the extension's, as a list of ForeignThing.
 * Without locks: DDL on other tables must not wait for what happens to these.
 */
List *
lockfence_foreign_things_of_all(void)
{
	Oid			schema = get_namespace_oid(LOCKFENCE_SCHEMA, true);
	List	   *things = NIL;

	for (int i = 0; OidIsValid(schema) && i < lengthof(own_tables); i++)
	{
		Relation	rel = RelationIdGetRelation(get_relname_relid(own_tables[i].name, schema));

		if (!RelationIsValid(rel))
			continue;
		if (rel->rd_rel->relkind == RELKIND_RELATION)
			things = list_concat(things, inspect(rel, &own_tables[i]));
		RelationClose(rel);
	}
	return things;
}

/* The thing as text. */
char *
lockfence_thing_text(const ForeignThing *thing)
{
	return thing->name == NULL ? pstrdup(thing->kind) :
		psprintf("%s \"%s\"", thing->kind, thing->name);
}

/* The first thing on the table that does such harm, or more, or NULL. */
static const ForeignThing *
find_harm(Relation rel, ThingHarm harm)
{
	ListCell   *lc;

	for (int i = 0; i < lengthof(own_tables); i++)
	{
		if (strcmp(RelationGetRelationName(rel), own_tables[i].name) != 0)
			continue;
		foreach(lc, inspect(rel, &own_tables[i]))
		{
			if (((ForeignThing *) lfirst(lc))->harm >= harm)
				return lfirst(lc);
		}
	}
	return NULL;
}

static void
refuse_write(Relation rel, const char *thing)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNFENCEABLE_OPERATION),
			 errmsg("the fence cannot write to table \"%s.%s\" as it is",
					LOCKFENCE_SCHEMA, RelationGetRelationName(rel)),
			 errdetail("It has %s. What is written there could be lost or wrong, so no mark is raised.",
					   thing),
			 errhint("Remove it as lockfence.verify() advises, and keep tools that copy or rebuild tables away from schema \"%s\".",
					 LOCKFENCE_SCHEMA),
			 errtable(rel)));
}

/* Can the fence write to the table, which is locked against DDL? */
bool
lockfence_is_intact(Relation rel)
{
	return find_harm(rel, THING_SPOILS_WRITES) == NULL;
}

/* Raise an error unless it can. */
void
lockfence_require_intact(Relation rel)
{
	const ForeignThing *thing = find_harm(rel, THING_SPOILS_WRITES);

	if (thing != NULL)
		refuse_write(rel, lockfence_thing_text(thing));
}

/* Raise an error unless the fence can read the table. */
void
lockfence_require_readable(Relation rel)
{
	const ForeignThing *thing = find_harm(rel, THING_SPOILS_READS);

	if (thing != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s.%s\" cannot be relied on",
						LOCKFENCE_SCHEMA, RelationGetRelationName(rel)),
				 errdetail("Its %s is not as the extension made it. A fence cannot decide, and rejects all writes.",
						   lockfence_thing_text(thing)),
				 errhint("Undo what was done to the table, or restore it from a backup."),
				 errtable(rel)));
}

/*
 * Open the table's indexes to write to them.  CREATE INDEX CONCURRENTLY does not wait
 * for writers before it adds one, so this checks the very indexes that it opens.
 */
CatalogIndexState
lockfence_open_indexes(Relation rel)
{
	CatalogIndexState indexes = CatalogOpenIndexes(rel);

	for (int i = 0; i < indexes->ri_NumIndices; i++)
	{
		IndexInfo  *info = indexes->ri_IndexRelationInfo[i];
		Relation	index = indexes->ri_IndexRelationDescs[i];

		if (info->ii_Expressions != NIL || info->ii_Predicate != NIL ||
			info->ii_ExclusionOps != NULL || !index->rd_index->indimmediate)
			refuse_write(rel, psprintf("index \"%s\"", RelationGetRelationName(index)));
	}
	return indexes;
}

/* A row of these columns for one of the tables; an additional column stays null. */
HeapTuple
lockfence_form_row(Relation rel, const NullableDatum *columns, int ncolumns)
{
	int			natts = RelationGetNumberOfAttributes(rel);
	Datum	   *values = palloc0(natts * sizeof(Datum));
	bool	   *isnull = palloc(natts * sizeof(bool));

	for (int i = 0; i < natts; i++)
	{
		isnull[i] = i >= ncolumns || columns[i].isnull;
		if (!isnull[i])
			values[i] = columns[i].value;
	}
	return heap_form_tuple(RelationGetDescr(rel), values, isnull);
}

/* _foreign_things(): the things on the tables of marks that are not the extension's */
Datum
lockfence_foreign_things(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *lc;

	lockfence_begin_rows(fcinfo);
	foreach(lc, lockfence_foreign_things_of_all())
	{
		ForeignThing *thing = lfirst(lc);
		Datum		values[4] = {ObjectIdGetDatum(thing->relid), CStringGetTextDatum(thing->kind)};
		bool		isnull[4] = {false, false, thing->name == NULL, false};

		if (thing->name != NULL)
			values[2] = CStringGetTextDatum(thing->name);
		values[3] = BoolGetDatum(thing->harm == THING_IS_HARMLESS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
	}
	return (Datum) 0;
}
