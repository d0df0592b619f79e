/*
 * issue.c
 *		Tokens that the fence issues itself.
 *
 * The mark is the counter.  The next token of a resource is one above its mark, or
 * above what stands for that.  Raising the mark to it gives the token and fences the
 * previous holder out, in one act.  So each token is issued once, and in the order
 * of commits: the mark stays changed until the transaction that issues ends, and
 * the next one waits for that.  A token that is rolled back is issued again, since
 * no other session has seen it.
 *
 * A transaction that is issuing is not a stale holder to the next one, which waits
 * for its end and does not preempt it.  Transactions that hold the resource by a
 * lower token are stale, as to any advance.
 */
#include "postgres.h"

#include "access/transam.h"
#include "fmgr.h"
#include "miscadmin.h"

#include "args.h"
#include "check.h"
#include "fence.h"
#include "granted.h"
#include "issue.h"
#include "lockfence.h"
#include "lockwait.h"
#include "mark.h"
#include "names.h"
#include "presented.h"
#include "readable.h"
#include "refuse.h"
#include "resource.h"
#include "state.h"
#include "stats.h"
#include "timeline.h"
#include "token.h"
#include "xact.h"

PG_FUNCTION_INFO_V1(lockfence_issue);

/* The highest token that the next one must exceed; 0: there is none. */
static FenceToken
last_token(const MarkScan *scan, int epoch)
{
	FenceToken	last = scan->found ? scan->token : lockfence_state_floor();

	if (epoch > 0)
		last = Max(last, (FenceToken) epoch << LOCKFENCE_REVISION_BITS);
	return Max(last, lockfence_state_minimum());
}

/* The next token, as the scan shows the mark; an error if the epoch has none left. */
static FenceToken
next_token(const MarkScan *scan, const FencedWrite *write)
{
	int			epoch = lockfence_state_epoch();
	FenceToken	last = last_token(scan, epoch);

	if ((last & LOCKFENCE_MAX_REVISION) == LOCKFENCE_MAX_REVISION ||
		(epoch >= 0 && lockfence_token_epoch(last) != epoch))
		lockfence_refuse_exhausted(write, last);
	return last + 1;
}

/* Fail if the mark is not the one that the caller has decided on. */
static void
require_mark(const MarkScan *scan, const FencedWrite *write, IssueTerms terms)
{
	if (terms.only_if_mark && (scan->found ? scan->token : 0) != terms.mark)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("a token of resource \"%s\" has been issued or presented meanwhile",
						lockfence_readable_resource(write))));
}

/*
 * One attempt: read the mark and raise it by one, or wait for the transaction that
 * is changing it.  Returns false if the mark has changed, or the floor that stood
 * for it.  Sets *found to whether there was a mark.
 */
static bool
try_issue(const ResourceKey *resource, FenceCheck *check, IssueTerms terms, bool *found)
{
	bool		issued = false;
	MarkScan	scan;

	CHECK_FOR_INTERRUPTS();
	lockfence_mark_begin(&scan, resource);
	if (!TransactionIdIsValid(scan.changing))
	{
		require_mark(&scan, &check->write, terms);
		check->token = next_token(&scan, &check->write);
		issued = lockfence_try_advance(&scan, check);
	}
	lockfence_mark_end(&scan);
	*found = scan.found;
	if (TransactionIdIsValid(scan.changing))
	{
		/* equal, so that this waits for the transaction and does no more */
		check->token = scan.pending;
		lockfence_wait_for_change(scan.changing, scan.pending, check);
	}
	return issued;
}

/*
 * Issue the next token of the resource, and so present it in this transaction.  Fail
 * with 55P03 if the terms are not met.
 */
FenceToken
lockfence_issue_token(const char *resource, IssueTerms terms)
{
	/*
	 * Single-use, since a token that equals the floor has been issued before.
	 * acquire() runs as its owner, so the rights to end holders are those of
	 * its caller.
	 */
	FenceCheck	check = {
		.write = {.resource = resource},
		.single_use = true,
		.by_administrator = true,
		.no_wait = terms.no_wait
	};
	ResourceKey key;
	bool		found;

	PreventCommandDuringRecovery("lockfence.issue()");
	(void) lockfence_pass_gate(&check.write);
	(void) lockfence_admit_session_grant(&check.write);
	lockfence_present_grant_first(&check, 0);

	lockfence_set_resource_key(&key, resource);
	while (!try_issue(&key, &check, terms, &found))
		;
	lockfence_count(NULL, LOCKFENCE_ISSUED);
	lockfence_reveal_name(resource);
	if (!found)
		lockfence_tell_unknown(resource);
	return check.token;
}

/* issue(resource): its next token */
Datum
lockfence_issue(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(lockfence_issue_token(lockfence_require_resource(fcinfo, 0),
										  (IssueTerms) {0}));
}
