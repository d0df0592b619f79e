/*
 * ddl.c
 *		The event triggers: DDL that would spoil the fence is refused.
 *
 * What a command has put on the tables of marks is found by looking at them
 * before and after it (intact.c), whatever the command was; so one that mends
 * some of what is wrong passes.  Of two commands' work in one transaction each
 * is looked at by itself.  The scripts of the extension itself do as they like.
 *
 * Some commands have to be refused before they begin: CREATE INDEX CONCURRENTLY
 * has committed what it made by the time it ends, and a policy is nowhere to be
 * seen until row-level security is on.
 *
 * DROP EXTENSION takes its locks on the tables of marks, which those who hold a
 * resource by the cache have not opened.  So it waits for the transactions that
 * hold anything before it begins, as it would wait for any other user of the
 * tables.  Who comes to hold one after that is as who comes after the drop: what
 * it was accepted by is gone, and so is what another's token would be compared
 * with.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "lockfence.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(lockfence_guard_ddl);

static MemoryContext before_context = NULL;
static List *before = NIL;		/* of strings: the foreign things as the command began */

/* The table in words that tell one thing from another. */
static char *
name_thing(const ForeignThing *thing)
{
	return psprintf("%s of %s", lockfence_thing_text(thing), thing->table);
}

static void
remember_things(void)
{
	MemoryContext old;
	ListCell   *lc;

	before = NIL;
	if (before_context == NULL)
		before_context = AllocSetContextCreate(TopMemoryContext, "lockfence DDL",
											   ALLOCSET_SMALL_SIZES);
	MemoryContextReset(before_context);
	old = MemoryContextSwitchTo(before_context);
	foreach(lc, lockfence_foreign_things_of_all())
		before = lappend(before, name_thing(lfirst(lc)));
	MemoryContextSwitchTo(old);
}

static bool
was_there_before(const char *thing)
{
	ListCell   *lc;

	foreach(lc, before)
	{
		if (strcmp(lfirst(lc), thing) == 0)
			return true;
	}
	return false;
}

static void
refuse_thing(const char *table, const char *thing)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNFENCEABLE_OPERATION),
			 errmsg("table \"%s.%s\" has to stay as the extension made it",
					LOCKFENCE_SCHEMA, table),
			 errdetail("The command would give it %s. The fence writes to the table directly, and marks could be lost or wrong.",
					   thing),
			 errhint("Keep tools that copy or rebuild tables away from schema \"%s\", as by pg_repack --exclude-extension=%s.",
					 LOCKFENCE_SCHEMA, LOCKFENCE_SCHEMA)));
}

static void
refuse_new_things(void)
{
	ListCell   *lc;

	foreach(lc, lockfence_foreign_things_of_all())
	{
		ForeignThing *thing = lfirst(lc);

		if (!was_there_before(name_thing(thing)))
			refuse_thing(thing->table, lockfence_thing_text(thing));
	}
}

/* Refuse what cannot be refused once it is done. */
static void
refuse_early(const RangeVar *relation, const char *thing)
{
	Oid			relid = RangeVarGetRelid(relation, NoLock, true);
	const char *table = lockfence_own_table(relid);

	if (table != NULL)
		refuse_thing(table, thing);
}

/* Does the command drop the extension? */
static bool
drops_extension(const DropStmt *drop)
{
	ListCell   *lc;

	/* which the schema of the same name takes along */
	if (drop->removeType != OBJECT_EXTENSION && drop->removeType != OBJECT_SCHEMA)
		return false;
	foreach(lc, drop->objects)
	{
		if (strcmp(strVal(lfirst(lc)), LOCKFENCE_SCHEMA) == 0)
			return true;
	}
	return false;
}

static void
before_command(Node *command)
{
	if (IsA(command, DropStmt))
	{
		if (drops_extension((DropStmt *) command))
			lockfence_wait_for_all_holders();
		return;
	}
	if (IsA(command, IndexStmt) && ((IndexStmt *) command)->concurrent)
		refuse_early(((IndexStmt *) command)->relation, "an index made concurrently");
	else if (IsA(command, CreatePolicyStmt))
		refuse_early(((CreatePolicyStmt *) command)->table, "a policy");
	remember_things();
}

/* Is a script of the extension at work? */
static bool
is_own_script(void)
{
	return creating_extension &&
		CurrentExtensionObject == get_extension_oid(LOCKFENCE_SCHEMA, true);
}

/* Event trigger: before, and after, a command of those that its definition names */
Datum
lockfence_guard_ddl(PG_FUNCTION_ARGS)
{
	EventTriggerData *trigger = (EventTriggerData *) fcinfo->context;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("this function is called by an event trigger only")));
	if (is_own_script())
		;
	else if (strcmp(trigger->event, "ddl_command_start") == 0)
		before_command(trigger->parsetree);
	else
		refuse_new_things();
	PG_RETURN_NULL();
}
