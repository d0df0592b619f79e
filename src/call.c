/*
 * call.c
 *		The token of a guarded function, while its statement runs.
 */
#include "postgres.h"

#include "catalog/pg_inherits.h"
#include "commands/trigger.h"
#include "utils/fmgrprotos.h"
#include "utils/snapmgr.h"

#include "call.h"
#include "lockfence.h"
#include "xact.h"

const CallToken *lockfence_current_call = NULL;

/*
 * Have a guarded function's token count for the rows that its statement writes to
 * the target: not for what triggers and other functions write on the way, of whatever
 * table, since that is of other resources, under locks of their own.  What they run has
 * a snapshot of its own, of a later command: the statement's own is the one that begins here.
 * But rules may run commands before it.
 */
void
lockfence_begin_call(CallToken *call, Relation target)
{
	call->target = RelationGetRelid(target);
	call->below = target->rd_rel->relhassubclass ?
		find_all_inheritors(call->target, NoLock, NULL) : NIL;
	call->depth = DatumGetInt32(pg_trigger_depth(NULL)) + 1;
	CommandCounterIncrement();
	call->command = target->rd_rules == NULL ? GetCurrentCommandId(false) : InvalidCommandId;
	call->outer = lockfence_current_call;
	lockfence_current_call = call;
	lockfence_change_version();
}

/* The call is over, or has failed. */
void
lockfence_end_call(const CallToken *call)
{
	lockfence_current_call = call->outer;
	lockfence_change_version();
}

/* The call that writes to the table, from the table's guard; NULL: none. */
const CallToken *
lockfence_find_call(Relation rel)
{
	const CallToken *call = lockfence_current_call;

	if (call->depth != DatumGetInt32(pg_trigger_depth(NULL)) ||
		(call->command != InvalidCommandId && call->command != GetActiveSnapshot()->curcid) ||
		(call->target != RelationGetRelid(rel) &&
		 !list_member_oid(call->below, RelationGetRelid(rel))))
		return NULL;
	return call;
}

/* How the transaction goes: no call outlives it. */
void
lockfence_call_at_xact(XactEvent event)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		lockfence_current_call = NULL;
}
