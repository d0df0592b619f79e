/*
 * limit.c
 *		Until when a token counts, by this server's clock, if its holder has said so.
 *
 * That takes nothing from what the marks tell: a stale token is refused whatever the
 * clock says.  It refuses a token that is not stale yet, because the next holder has
 * not come or has not presented its token, but whose lease has ended.
 *
 * A write is judged when it is decided on, after all waiting, and once more at the
 * commit, or at PREPARE TRANSACTION: what was written under the token in time would
 * otherwise become visible after its end.  What the commit itself takes comes after
 * that.  Only tokens under which a table was written, or a definition was changed, are
 * looked at then.
 *
 * The clock is read where a limit is set, and nowhere else.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/timestamp.h"

#include "advisory.h"
#include "check.h"
#include "grant.h"
#include "limit.h"
#include "refuse.h"
#include "settings.h"
#include "xact.h"

static LeaseEnd lease_end = NULL;

/* Set the function that is asked for the end of a lease. */
void
lockfence_set_lease_end(LeaseEnd function)
{
	lease_end = function;
}

static bool
is_past(TimestampTz until)
{
	return until != 0 && GetCurrentTimestamp() >= until;
}

/* Has the limit passed?  That of a lease is looked up then: another connection may have renewed it. */
static bool
has_passed(const char *resource, FenceToken token, TokenLimit *limit)
{
	if (!is_past(limit->until))
		return false;
	return !limit->by_lease || !lease_end(resource, token, &limit->until) || is_past(limit->until);
}

/* The end of the token's lease, if it has one; that it has none is remembered as well. */
static TokenLimit
limit_of_lease(const char *resource, FenceToken token)
{
	TokenLimit	limit = {.by_lease = true};

	(void) lease_end(resource, token, &limit.until);
	return limit;
}

/*
 * May the write go on under a token that counts until then?  Remembers it for the
 * commit.  On an advisory fence it goes on at any rate, and the commit is none of
 * the fence's business.
 */
bool
lockfence_keep_limit(const FencedWrite *write, FenceToken token, TokenLimit limit)
{
	bool		writes = (write->rel != NULL || write->is_ddl) && !write->advisory;

	if (lockfence_limit_leases && write->resource != NULL && limit.until == 0 && !limit.by_lease)
		limit = limit_of_lease(write->resource, token);
	if (has_passed(write->resource, token, &limit))
	{
		lockfence_refuse_expired(write, token, limit.until);
		return false;
	}
	limit.written |= writes;
	if (write->resource != NULL)
		lockfence_limit_token(write->resource, token, limit);
	else if (writes && limit.until != 0)
		lockfence_limit_rows(limit.until);
	return true;
}

/* Refuse the commit if a token under which a table was written has ended. */
static void
check_held(const char *resource, const HeldToken *held, void *arg)
{
	FencedWrite write = {.resource = resource,.advisory = lockfence_is_advisory(NULL)};
	TokenLimit	limit = held->limit;

	if (held->limit.written && has_passed(resource, held->token, &limit))
		lockfence_refuse_expired_at_commit(&write, held->token, limit.until,
										   !OidIsValid(held->table));
}

/* The same of rows of row fences, which were written under the session's token. */
static void
check_rows(void)
{
	TimestampTz until = lockfence_limit_of_rows();
	FencedWrite write = {.resource = "",.advisory = lockfence_is_advisory(NULL)};

	if (is_past(until))
		lockfence_refuse_expired_at_commit(&write, lockfence_find_grant(NULL)->token, until, false);
}

/* The transaction is about to commit, or to be prepared. */
void
lockfence_limit_at_xact(XactEvent event)
{
	if (!lockfence_has_limits)
		return;
	lockfence_visit_held_tokens(check_held, NULL);
	check_rows();
}
