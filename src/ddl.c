/*
 * ddl.c
 *		The event triggers: DDL that would spoil the fence is refused.
 *
 * What a command has put on the tables of marks is found by looking at them
 * before and after it (intact.c), whatever the command was; so one that mends
 * some of what is wrong passes.  Of two commands' work in one transaction each
 * is looked at by itself, also of those that run within another, as by the event
 * triggers of others and by functions that a command calls: what they find there may
 * be of the outer one, which has yet to answer for it.  The scripts of the extension
 * itself do as they like.
 *
 * Some commands have to be refused before they begin: CREATE INDEX CONCURRENTLY
 * has committed what it made by the time it ends, and a policy is nowhere to be
 * seen until row-level security is on.
 *
 * DROP EXTENSION, or what else takes the extension along, takes its locks on the tables of marks, which those who hold a
 * resource by the cache have not opened.  So it waits for the transactions that
 * hold anything before it begins, as it would wait for any other user of the
 * tables.  Who comes to hold one after that is as who comes after the drop: what
 * it was accepted by is gone, and so is what another's token would be compared
 * with.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "ddl.h"
#include "intact.h"
#include "lockfence.h"
#include "reslock.h"

PG_FUNCTION_INFO_V1(lockfence_guard_ddl);

/* A command that has begun. */
typedef struct Command
{
	struct Command *outer;		/* the one that it runs within; NULL: none */
	MemoryContext context;		/* of all this */
	int			level;			/* nesting level of transactions */
	List	   *before;			/* of strings: the foreign things as it began */
} Command;

static Command *command = NULL; /* the innermost */

/* The table in words that tell one thing from another. */
static char *
name_thing(const ForeignThing *thing)
{
	return psprintf("%s of %s", lockfence_thing_text(thing), thing->table);
}

static List *
name_things(void)
{
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, lockfence_foreign_things_of_all())
		names = lappend(names, name_thing(lfirst(lc)));
	return names;
}

static void
begin_command(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "lockfence DDL",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Command    *begun = palloc(sizeof(Command));

	*begun = (Command) {
		.outer = command,
		.context = context,
		.level = GetCurrentTransactionNestLevel(),
		.before = name_things()
	};
	MemoryContextSwitchTo(old);
	/* some commands commit, and go on */
	MemoryContextSetParent(context, TopMemoryContext);
	command = begun;
}

static void
end_command(void)
{
	Command    *ended = command;

	command = ended->outer;
	MemoryContextDelete(ended->context);
}

/*
 * How the transaction goes.  A command that commits and goes on runs within no
 * other.
 */
void
lockfence_ddl_at_xact(XactEvent event)
{
	bool		goes_on = event == XACT_EVENT_COMMIT;

	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
		return;
	while (command != NULL && (!goes_on || command->outer != NULL))
		end_command();
}

/* How a subtransaction goes. */
void
lockfence_ddl_at_subxact(SubXactEvent event)
{
	int			level = GetCurrentTransactionNestLevel();

	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		while (command != NULL && command->level >= level)
			end_command();
	}
}

static bool
was_there_before(const char *thing)
{
	ListCell   *lc;

	foreach(lc, command == NULL ? NIL : command->before)
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
			 errmsg("table \"%s.%s\" must stay as the extension made it",
					LOCKFENCE_SCHEMA, table),
			 errdetail("The command would give it %s. The fence writes to the table directly, and marks could be lost or wrong.",
					   thing),
			 errhint("Keep tools that copy or rebuild tables away from schema \"%s\", for instance by pg_repack --exclude-extension=%s.",
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
	if (command != NULL)
		end_command();
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

/* Is the extension among what a command names?  The schema of the same name takes it along. */
static bool
names_extension(const DropStmt *drop)
{
	ListCell   *lc;

	foreach(lc, drop->objects)
	{
		if (strcmp(strVal(lfirst(lc)), LOCKFENCE_SCHEMA) == 0)
			return true;
	}
	return false;
}

/*
 * May the command drop the extension?  By its name, by one that it needs, or by
 * its owner.
 */
static bool
may_drop_extension(Node *parsetree)
{
	const DropStmt *drop = (DropStmt *) parsetree;

	if (IsA(parsetree, DropOwnedStmt))
		return ((DropOwnedStmt *) parsetree)->behavior == DROP_CASCADE;
	if (drop->removeType == OBJECT_EXTENSION)
		return drop->behavior == DROP_CASCADE || names_extension(drop);
	return drop->removeType == OBJECT_SCHEMA && names_extension(drop);
}

static void
before_command(Node *parsetree)
{
	if (IsA(parsetree, DropStmt) || IsA(parsetree, DropOwnedStmt))
	{
		if (may_drop_extension(parsetree))
			lockfence_wait_for_all_holders();
		return;
	}
	if (IsA(parsetree, IndexStmt) && ((IndexStmt *) parsetree)->concurrent)
		refuse_early(((IndexStmt *) parsetree)->relation, "an index made concurrently");
	else if (IsA(parsetree, CreatePolicyStmt))
		refuse_early(((CreatePolicyStmt *) parsetree)->table, "a policy");
	begin_command();
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
