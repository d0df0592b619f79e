/*
 * ddl.c
 *		The event triggers that refuse DDL which would spoil the fence.
 *
 * Whatever the command, what it has put on the tables of marks is found by looking
 * at them before and after it (intact.c); so a command passes that only removes
 * something wrong.  Each command is judged alone, also when several run in one
 * transaction, and when one runs within another, as in event triggers of other
 * extensions and in functions that a command calls: what the inner command finds
 * may be the work of the outer one, which is judged when it ends.  The scripts of
 * the extension itself may do anything.
 *
 * Some commands must be refused before they begin: CREATE INDEX CONCURRENTLY has
 * committed its work by the time it ends, and a policy cannot be seen until
 * row-level security is on.
 *
 * DROP EXTENSION, and any other command that drops the extension, locks the tables
 * of marks; but transactions that hold a resource by the cache have not opened
 * those tables.  So the command first waits for all transactions that hold a
 * resource, as it would wait for any other user of the tables.  A transaction that
 * comes to hold one after that is like one that comes after the drop: the mark by
 * which it was accepted is gone, and so is the mark that another token would be
 * compared with.
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
#include "partitionddl.h"
#include "reslock.h"

PG_FUNCTION_INFO_V1(lockfence_guard_ddl);

/* A command that has begun. */
typedef struct Command
{
	struct Command *outer;		/* the command that it runs within; NULL: none */
	MemoryContext context;		/* of all this */
	int			level;			/* nesting level of transactions */
	List	   *before;			/* of strings: the foreign things when it began */
} Command;

static Command *command = NULL; /* the innermost */

/* The thing in words that distinguish it from others. */
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
	/* some commands commit, and continue */
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
 * The end of the transaction.  A command that commits and continues is never
 * within another.
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

/* The end of a subtransaction. */
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

/* Refuse a command that must not begin. */
static void
refuse_early(const RangeVar *relation, const char *thing)
{
	Oid			relid = RangeVarGetRelid(relation, NoLock, true);
	const char *table = lockfence_own_table(relid);

	if (table != NULL)
		refuse_thing(table, thing);
}

/* Does a command name the extension?  So does one that names the schema, which takes the extension along. */
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
 * May the command drop the extension?  It can name it, an object that it depends on,
 * or its owner.
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
	lockfence_before_partition(parsetree);
	begin_command();
}

/* Is a script of the extension running? */
static bool
is_own_script(void)
{
	return creating_extension &&
		CurrentExtensionObject == get_extension_oid(LOCKFENCE_SCHEMA, true);
}

/* Event trigger: before and after the commands that its definition names */
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
