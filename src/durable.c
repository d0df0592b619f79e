/*
 * durable.c
 *		A commit that is not acknowledged before it is safe, whatever
 *		synchronous_commit says: if a mark were lost, a stale holder would be accepted.
 *
 * ForceSyncCommit() has the commit flushed here.  Whether it waits for a
 * synchronous standby as well is up to synchronous_commit alone, so that is
 * raised while the transaction commits.
 */
#include "postgres.h"

#include "access/xact.h"

#include "compat.h"
#include "durable.h"

static bool must_be_durable = false;
static bool is_raised = false;
static int	setting;			/* what it was before it was raised */

/* The variable alone is not the setting: its hook says what is waited for. */
static void
assign_setting(int value)
{
	synchronous_commit = value;
	assign_synchronous_commit(value, NULL);
}

static void
raise_setting(void)
{
	if (!must_be_durable || synchronous_commit > SYNCHRONOUS_COMMIT_LOCAL_FLUSH)
		return;
	setting = synchronous_commit;
	assign_setting(SYNCHRONOUS_COMMIT_ON);
	is_raised = true;
}

/* How the transaction goes. */
void
lockfence_durable_at_xact(XactEvent event)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			raise_setting();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			if (is_raised)
				assign_setting(setting);
			must_be_durable = is_raised = false;
			break;
		default:
			break;
	}
}

/* This transaction's commit must not be lost. */
void
lockfence_commit_durably(void)
{
	ForceSyncCommit();
	must_be_durable = true;
}
