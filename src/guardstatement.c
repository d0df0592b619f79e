/*
 * guardstatement.c
 *		The triggers that stand between a statement and a fenced table: that of a fence of
 *		one resource, and that of TRUNCATE.
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "replication/logicalworker.h"

#include "advisory.h"
#include "bypass.h"
#include "check.h"
#include "fence.h"
#include "fencecache.h"
#include "fencedef.h"
#include "guardcall.h"
#include "lockfence.h"
#include "presented.h"
#include "refuse.h"
#include "stats.h"
#include "template.h"

PG_FUNCTION_INFO_V1(lockfence_guard_statement);
PG_FUNCTION_INFO_V1(lockfence_guard_truncate);

/* A statement on a table, as its guard sees it. */
typedef struct StatementGuard
{
	Relation	rel;
	const Fence *fence;
	WriteCommand command;
} StatementGuard;

/* Check the token that was presented for a fence of the whole table. */
static void
check_constant(void *arg)
{
	const StatementGuard *guard = (const StatementGuard *) arg;
	const char *resource = lockfence_constant_resource(guard->fence);
	PresentedTokens tokens = lockfence_presented_tokens(guard->rel, resource);
	FenceCheck	check = lockfence_fence_check(guard->fence, guard->rel, resource);
	FenceToken	previous;

	check.command = guard->command;
	if (lockfence_admit(&check, &tokens, &previous) != 0)
		lockfence_count(guard->rel, LOCKFENCE_ACCEPTED);
}

/*
 * Decide on a TRUNCATE.  Where the rows name their resources, no token of the transaction
 * can be compared: so one that has an ambient token must not TRUNCATE.
 */
static void
check_truncate(void *arg)
{
	const StatementGuard *guard = (const StatementGuard *) arg;
	const Fence *fence = guard->fence;
	FencedWrite write = {.rel = guard->rel,.advisory = lockfence_is_advisory(fence)};

	if (fence->resource != NULL && fence->constant)
		check_constant(arg);
	else if ((fence->missing & WRITE_TRUNCATE) && lockfence_ambient_in_force() == 0)
		lockfence_pass_unprotected(fence, &write);
	else
		lockfence_refuse_truncate(&write);
}

static WriteCommand
statement_command(TriggerEvent event)
{
	return TRIGGER_FIRED_BY_INSERT(event) ? WRITE_INSERT :
		TRIGGER_FIRED_BY_UPDATE(event) ? WRITE_UPDATE :
		TRIGGER_FIRED_BY_DELETE(event) ? WRITE_DELETE : WRITE_TRUNCATE;
}

/* Have a statement decided on, unless the fence is bypassed. */
static Datum
guard_statement(FunctionCallInfo fcinfo, Decision decide)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	StatementGuard guard;

	lockfence_require_guard(fcinfo, false);
	guard.rel = trigger->tg_relation;
	guard.command = statement_command(trigger->tg_event);
	if (lockfence_is_bypassed(guard.rel) || IsLogicalWorker())
		return PointerGetDatum(NULL);
	guard.fence = lockfence_trigger_fence(fcinfo);
	(void) lockfence_decide(guard.rel, guard.fence, decide, &guard);
	return PointerGetDatum(NULL);
}

/* BEFORE INSERT OR UPDATE OR DELETE FOR EACH STATEMENT */
Datum
lockfence_guard_statement(PG_FUNCTION_ARGS)
{
	return guard_statement(fcinfo, check_constant);
}

/* BEFORE TRUNCATE FOR EACH STATEMENT */
Datum
lockfence_guard_truncate(PG_FUNCTION_ARGS)
{
	return guard_statement(fcinfo, check_truncate);
}
