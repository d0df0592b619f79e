/*
 * names.c
 *		Which resource names the fences of this database can make.
 *
 * A mark whose name no fence can make protects no table: the name is mistyped, or
 * used with present() alone.  The latter is legitimate, so such a name raises a
 * notice and is not refused.  The exception is the name by which refusals on a row
 * fence call a row: it belongs to a row and to no lock.
 *
 * The declarations are read from the arguments of the guards' triggers, which are
 * found by their dependency on the guards' functions, and each backend keeps them.
 * A name that a kept fence can make passes; before the backend reports any other
 * name, it reads all declarations again.  So a report may be missing for a fence
 * that is gone, but none is wrong.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "args.h"
#include "compat.h"
#include "ddlfence.h"
#include "lockfence.h"
#include "names.h"
#include "settings.h"
#include "trigarg.h"
#include "visible.h"

/* What the guard of a table declares, or the fence of DDL. */
typedef struct Declared
{
	Oid			relid;			/* InvalidOid: DDL, whose resource has no placeholder */
	char	   *template;		/* NULL: a row fence */
} Declared;

typedef enum NameKind
{
	NAME_OF_FENCE,				/* or the database has no fences */
	NAME_OF_ROW,
	NAME_UNKNOWN
} NameKind;

PG_FUNCTION_INFO_V1(lockfence_check_name);
PG_FUNCTION_INFO_V1(lockfence_is_named);


static MemoryContext declared_context = NULL;
static List *declared = NIL;

/* The end of the placeholder that begins here; NULL: none begins here. */
static const char *
skip_placeholder(const char *template)
{
	const char *end;

	if (template[0] != '{' || template[1] == '{')
		return NULL;
	end = strchr(template, '}');
	return end ? end + 1 : NULL;
}

/*
 * Can the template become the name, whatever the columns contain?  An invalid
 * template, which its guard refuses, is taken literally.
 */
static bool
makes_name(const char *template, const char *name)
{
	const char *after = NULL;	/* the last placeholder so far ... */
	const char *end = NULL;		/* ... whose value ends here, as a guess */

	for (;;)
	{
		const char *next = skip_placeholder(template);

		if (next != NULL)
		{
			after = template = next;
			end = name;
			continue;
		}
		if (*template == '\0' && *name == '\0')
			return true;
		if (*template != '\0' && *template == *name)
		{
			template += (*template == '{' || *template == '}') && template[1] == *template ? 2 : 1;
			name++;
			continue;
		}
		if (after == NULL || *end == '\0')
			return false;
		template = after;
		name = ++end;
	}
}

/*
 * Add what a trigger's arguments declare, unless they are longer than a guard's: an
 * owner can have them be of any length, and every backend would keep them.
 */
static void
add_arguments(Oid relid, Datum tgargs)
{
	MemoryContext working = AllocSetContextCreate(CurrentMemoryContext, "lockfence arguments",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext before = MemoryContextSwitchTo(working);
	int			length;
	char	   *arguments = lockfence_argument_bytes(tgargs, &length);
	FenceSettings settings = {0};

	for (char *p = arguments; p != NULL && p < arguments + length; p += strlen(p) + 1)
		lockfence_read_argument(&settings, p);
	MemoryContextSwitchTo(before);
	if (arguments != NULL)
	{
		Declared   *entry = palloc(sizeof(Declared));
		const char *template = settings.values[SETTING_RESOURCE];

		*entry = (Declared) {relid, template ? pstrdup(template) : NULL};
		declared = lappend(declared, entry);
	}
	MemoryContextDelete(working);
}

/* Add the declaration of a trigger. */
static void
add_trigger(Relation triggers, Oid trigger)
{
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(trigger));
	scan = systable_beginscan(triggers, TriggerOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		tgargs = fastgetattr(tuple, Anum_pg_trigger_tgargs,
										 RelationGetDescr(triggers), &isnull);

		add_arguments(((Form_pg_trigger) GETSTRUCT(tuple))->tgrelid, tgargs);
	}
	systable_endscan(scan);
}

/* Add the declarations of the triggers that call a function. */
static void
add_triggers_of(const char *function)
{
	Oid			schema = get_namespace_oid(LOCKFENCE_SCHEMA, true);
	Oid			oid = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
									  CStringGetDatum(function),
									  PointerGetDatum(buildoidvector(NULL, 0)),
									  ObjectIdGetDatum(schema));
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	Relation	triggers = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ProcedureRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(oid));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		CHECK_FOR_INTERRUPTS();
		if (form->classid == TriggerRelationId)
			add_trigger(triggers, form->objid);
	}
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);
	table_close(depend, AccessShareLock);
}

/* Add what DDL needs a grant of. */
static void
add_ddl(void)
{
	ListCell   *cell;

	foreach(cell, lockfence_ddl_resources())
	{
		Declared   *entry = palloc(sizeof(Declared));

		*entry = (Declared) {InvalidOid, lfirst(cell)};
		declared = lappend(declared, entry);
	}
}

/* Read the declarations of all fences.  After an error none are known. */
void
lockfence_read_declared(void)
{
	MemoryContext before;

	declared = NIL;
	if (declared_context == NULL)
		declared_context = AllocSetContextCreate(CacheMemoryContext, "lockfence names",
												 ALLOCSET_SMALL_SIZES);
	MemoryContextReset(declared_context);
	before = MemoryContextSwitchTo(declared_context);
	add_triggers_of("guard_row");
	add_triggers_of("guard_statement");
	add_ddl();
	MemoryContextSwitchTo(before);
}

/* Can one of the fences that were read make the name? */
static bool
is_makeable(const char *name)
{
	ListCell   *cell;

	foreach(cell, declared)
	{
		const Declared *entry = lfirst(cell);

		if (entry->template == NULL)
			continue;
		if (OidIsValid(entry->relid) ? makes_name(entry->template, name) :
			strcmp(entry->template, name) == 0)
			return true;
	}
	return false;
}

/* Does the template name the column? */
static bool
has_placeholder(const char *template, const char *column)
{
	size_t		length = strlen(column);

	for (const char *p = template; *p; p++)
	{
		const char *end = skip_placeholder(p);

		if (end == NULL)
			p += p[1] != '\0' && p[0] == p[1] && (*p == '{' || *p == '}');
		else if ((size_t) (end - p) == length + 2 && strncmp(p + 1, column, length) == 0)
			return true;
		else
			p = end - 1;
	}
	return false;
}

/*
 * Does the fence of a table, as last read, name resources by the column?  If a
 * partition's fence is also that of a table above it, that table answers.
 */
bool
lockfence_names_by_column(Oid relid, const char *column)
{
	const char *template = NULL;
	ListCell   *cell;

	foreach(cell, declared)
	{
		const Declared *entry = lfirst(cell);

		if (entry->relid == relid && entry->template != NULL &&
			has_placeholder(entry->template, column))
			template = entry->template;
	}
	if (template == NULL || !get_rel_relispartition(relid))
		return template != NULL;
	foreach(cell, declared)
	{
		const Declared *entry = lfirst(cell);

		if (entry->template != NULL && strcmp(entry->template, template) == 0 &&
			!get_rel_relispartition(entry->relid))
			return false;
	}
	return true;
}

/* Is this the name by which refusals call a row of that table? */
static bool
is_row_of(Oid relid, const char *name)
{
	static const char *const prefix = "a row of ";
	const char *table = get_rel_name(relid);
	const char *schema = get_namespace_name(get_rel_namespace(relid));
	size_t		length;

	if (table == NULL || schema == NULL)
		return false;			/* dropped meanwhile */
	table = quote_qualified_identifier(schema, table);
	length = strlen(table);
	if (strncmp(name, prefix, strlen(prefix)) == 0)
		return strcmp(name + strlen(prefix), table) == 0;
	return strncmp(name, table, length) == 0 &&
		(name[length] == '\0' || strncmp(name + length, " (", 2) == 0);
}

static bool
is_of_row(const char *name)
{
	ListCell   *cell;

	foreach(cell, declared)
	{
		const Declared *entry = lfirst(cell);

		if (entry->template == NULL && is_row_of(entry->relid, name))
			return true;
	}
	return false;
}

/* What does the name belong to, by the present declarations? */
static NameKind
judge_name(const char *name)
{
	lockfence_read_declared();
	if (is_makeable(name))
		return NAME_OF_FENCE;
	if (is_of_row(name))
		return NAME_OF_ROW;
	return declared == NIL ? NAME_OF_FENCE : NAME_UNKNOWN;
}

/* Raise the error for the name of a row given instead of a lock's. */
static void
refuse_row_name(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("\"%s\" is a row of a row fence, not the name of a resource",
					lockfence_visible(name)),
			 errdetail("The mark of a row is in the row."),
			 errhint("Give the table and the key of the row: lockfence.raise_mark(target, key, token, reason), lockfence.reset_mark(target, key, token, reason) or lockfence.is_current(target, key, token).")));
}

static void
report_unknown(int level, const char *name, NameKind kind)
{
	ereport(level,
			(errmsg("no fence of this database can make the resource name \"%s\"",
					lockfence_visible(name)),
			 errdetail("Its mark is checked when a token is presented for that name, but not by any fenced table."),
			 kind == NAME_OF_ROW ?
			 errhint("A row of a row fence has no name. Call lockfence.present(token), or set the token column of the row.") :
			 errhint("Compare it with lockfence.fences. If the name is used without a fence, set lockfence.unknown_resource to \"ignore\".")));
}

/*
 * Report a name that was presented for the first time and that no fence can make,
 * once per transaction: a session that presents many such names knows it.
 */
void
lockfence_tell_unknown(const char *name)
{
	static LocalTransactionId told = InvalidLocalTransactionId;
	LocalTransactionId now = LOCKFENCE_PROC_LXID(MyProc);
	NameKind	kind;

	if (lockfence_unknown_resource == LOCKFENCE_UNKNOWN_IGNORE || told == now ||
		is_makeable(name))
		return;
	kind = judge_name(name);
	if (kind == NAME_OF_FENCE)
		return;
	told = now;
	report_unknown(lockfence_unknown_resource == LOCKFENCE_UNKNOWN_WARNING ? WARNING : NOTICE,
				   name, kind);
}

/* Refuse the name of a row, which has no mark under it; do not check others. */
void
lockfence_require_no_row(const char *name)
{
	if ((strstr(name, ")=(") != NULL || strncmp(name, "a row of ", 9) == 0) &&
		judge_name(name) == NAME_OF_ROW)
		refuse_row_name(name);
}

/* _check_name(resource): refuses the name of a row, and warns of one that no fence can make */
Datum
lockfence_check_name(PG_FUNCTION_ARGS)
{
	char	   *name = lockfence_require_resource(fcinfo, 0);
	NameKind	kind = judge_name(name);

	if (kind == NAME_OF_ROW)
		refuse_row_name(name);
	if (kind == NAME_UNKNOWN && lockfence_unknown_resource != LOCKFENCE_UNKNOWN_IGNORE)
		report_unknown(WARNING, name, kind);
	PG_RETURN_VOID();
}

/*
 * _is_named(resource): can a fence make the name, or has the database no fences?
 * The declarations are read once per query.
 */
Datum
lockfence_is_named(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	bool		is_named;

	if (fcinfo->flinfo->fn_extra == NULL)
	{
		lockfence_read_declared();
		fcinfo->flinfo->fn_extra = &declared;
	}
	is_named = declared == NIL || is_makeable(name);
	pfree(name);
	PG_RETURN_BOOL(is_named);
}
