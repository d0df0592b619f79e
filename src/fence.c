/*
 * fence.c
 *		The decision: may this write go on?
 *
 * Every path asks lockfence_admit(), in which each step has to let the write
 * pass: the gate, the record of what is fenced, the tokens that it presents, the epoch
 * and the minimum, and the mark, which one function compares with the token.  On an
 * advisory fence a refusal is a report, and ends the decision all the same: nothing
 * is advanced or held for what was refused.
 *
 * A token that is stored in a row of the resource has been accepted for it, here
 * or where the row came from.  Where it is above the mark, it stands in its place.
 *
 * A row fence keeps the mark in the row.  The row is locked before its guard
 * is called and OLD is its newest version, so the comparison needs no other
 * lock.
 *
 * For the mark of a named resource this is the order of events, and why each
 * race ends well:
 *
 * - The mark is read first, without the resource's lock, and the version that
 *   was read stays pinned, or is read again after a wait.  Nothing is
 *   accepted on that read.
 * - Equal: take the resource's lock in hold mode, then ask whether that very
 *   version is still the mark and no transaction is changing it.  An advance
 *   needs the lock in advance mode while it writes, so a yes stays true until
 *   this transaction ends.  A no starts over.
 * - Higher: take the lock in advance mode, which waits for every holder, ask
 *   the same, write, and release the lock at once: from there the uncommitted
 *   version guards the resource, since a transaction that reads it waits for this one.
 * - No mark: the same, but read again under the lock, then read the floor.
 * - Another transaction is changing the mark: wait for its end, holding
 *   nothing, and start over.
 * - Lower than a committed mark: refuse.
 *
 * A transaction that already holds the resource and presents a higher token
 * keeps its hold while it advances, since its earlier writes need it.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "advances.h"
#include "cache.h"
#include "check.h"
#include "durable.h"
#include "epoch.h"
#include "fence.h"
#include "limit.h"
#include "lockfence.h"
#include "lockwait.h"
#include "mark.h"
#include "marklock.h"
#include "presented.h"
#include "record.h"
#include "refuse.h"
#include "reslock.h"
#include "resource.h"
#include "settings.h"
#include "state.h"
#include "stats.h"
#include "timeline.h"
#include "token.h"
#include "validator.h"
#include "xact.h"

typedef enum Verdict
{
	REFUSED,
	ACCEPTED,
	START_OVER,
	ASK_VALIDATOR
} Verdict;

/* What a token is compared with, as a refusal names it. */
typedef struct Mark
{
	FenceToken	token;
	const char *name;
	const MarkScan *scan;		/* which it is from; NULL: from elsewhere */
} Mark;

/* How the token stands to a mark, where a fence may accept each token once. */
static Standing
compare(const FenceCheck *check, FenceToken mark)
{
	Standing	standing = lockfence_compare(check->token, mark);

	return standing == EQUAL && check->single_use ? REPEATED : standing;
}

/* Does the token pass the mark?  Refuses it if not.  A mark of this transaction does not tell when it rose. */
static bool
passes(const FenceCheck *check, Standing standing, Mark mark)
{
	if (standing == STALE)
		lockfence_refuse_stale(&check->write, check->token, mark.token, mark.name,
							   mark.scan && !mark.scan->own ? lockfence_mark_advanced_at(mark.scan) : 0);
	else if (standing == REPEATED)
		lockfence_refuse_repeated(&check->write, check->token);
	return standing >= EQUAL;
}

/* The higher of a mark, or what stands for it, and the token stored in the row. */
static Mark
standing_mark(const FenceCheck *check, Mark mark)
{
	if (lockfence_compare(check->stored, mark.token) == HIGHER)
		return (Mark) {check->stored, "token stored in the row"};
	return mark;
}

/* Does the token pass the one stored in the row, which may be above the mark? */
static bool
passes_stored(const FenceCheck *check)
{
	return lockfence_compare(check->token, check->stored) != STALE;
}

/* Remember that the transaction holds the resource.  Returns its name, which is kept until the transaction ends. */
static const char *
remember(const FenceCheck *check, bool advanced, bool locked)
{
	HeldToken	held = {
		.token = check->token,
		.advanced = advanced,
		.locked = locked,
		.table = check->write.named_by ? RelationGetRelid(check->write.rel) : InvalidOid
	};

	return lockfence_remember_token(check->write.resource, held);
}

/* Keep a mark that equals the token from changing before the end. */
static Verdict
hold_mark(MarkScan *scan, const FenceCheck *check)
{
	bool		by_tuple = lockfence_held_locks() >= lockfence_max_resource_locks;

	if (!(by_tuple ? lockfence_hold_by_tuple(scan, check) : lockfence_hold_mark(scan, check)))
		return START_OVER;
	if (!by_tuple && !scan->own)
		lockfence_cache_put(scan->resource, check->token, scan->witness);
	(void) remember(check, false, !by_tuple);
	return ACCEPTED;
}

/*
 * The same, where the cache tells that the mark equals the token: the lock
 * alone is then to be taken, and the cache to be seen unchanged under it.
 */
static bool
hold_cached_mark(const ResourceKey *resource, const FenceCheck *check)
{
	CacheLook	look;
	ResourceHold hold;

	/* none is 0, and equals no token */
	if (check->single_use || !passes_stored(check) ||
		lockfence_held_locks() >= lockfence_max_resource_locks ||
		lockfence_compare(check->token, lockfence_cache_find(resource, &look)) != EQUAL)
		return false;
	if (!lockfence_try_hold(&hold, resource, false))
		lockfence_await_hold(&hold, check);
	if (!lockfence_cache_unchanged(&look) || !lockfence_grant_hold(&hold))
	{
		lockfence_release_hold(&hold);
		return false;
	}
	(void) remember(check, false, true);
	return true;
}

/* Is it certain, under the exclusive lock, that the scan shows the mark? */
static bool
scan_is_certain(MarkScan *scan)
{
	if (scan->found)
		return lockfence_mark_unchanged(scan);
	lockfence_mark_look_again(scan);
	return !scan->found && !TransactionIdIsValid(scan->changing);
}

/* Wait for the transactions that hold the mark by its tuple; false if it has changed meanwhile. */
static bool
settle_lockers(MarkScan *scan, const FenceCheck *check)
{
	List	   *lockers = lockfence_mark_lockers(scan);

	if (lockers == NIL)
		return true;
	lockfence_mark_unpin(scan);
	lockfence_settle_lockers(lockers, check);
	return lockfence_mark_unchanged(scan);
}

/*
 * Raise the mark to the token, under the exclusive lock.  Where there is no
 * mark, tells how the token stands to what stands for it: REFUSED says that it
 * does not pass that.
 */
static Verdict
write_mark(MarkScan *scan, const FenceCheck *check, Mark *mark, Standing *standing)
{
	*standing = HIGHER;
	if (!scan_is_certain(scan))
		return START_OVER;
	if (!scan->found)
	{
		*mark = standing_mark(check, (Mark) {lockfence_state_floor(), "floor"});
		*standing = compare(check, mark->token);
		if (*standing < EQUAL)
			return REFUSED;
	}
	else if (!settle_lockers(scan, check))
		return START_OVER;
	lockfence_mark_write(scan, check->token);
	lockfence_commit_durably();
	return ACCEPTED;
}

/* The same, with the lock around it. */
static Verdict
lock_and_write_mark(MarkScan *scan, const FenceCheck *check, Mark *mark,
					Standing *standing)
{
	Verdict		verdict;

	PreventCommandIfReadOnly("an advance of a fence's mark");
	if (!lockfence_lock_for_advance(check, scan))
		return START_OVER;
	verdict = write_mark(scan, check, mark, standing);
	lockfence_release_exclusive(scan->resource);
	return verdict;
}

/* The mark that the scan shows has been advanced to the token. */
static void
note_advance(const MarkScan *scan, const FenceCheck *check, Standing standing)
{
	const char *name = remember(check, standing == HIGHER, false);

	lockfence_count(check->write.rel, LOCKFENCE_ADVANCED);
	if (standing == HIGHER)
		lockfence_note_advance(check->write.rel, name, scan->resource->hash,
							   (MarkChange) {scan->token, check->token, lockfence_way_of_token(check)});
}

/* Advance the mark to a token that is higher, or the resource's first. */
static Verdict
advance_mark(MarkScan *scan, const FenceCheck *check)
{
	Mark		mark;
	Standing	standing;
	Verdict		verdict = lock_and_write_mark(scan, check, &mark, &standing);

	if (verdict == ACCEPTED)
		note_advance(scan, check, standing);
	else if (verdict == REFUSED)
		(void) passes(check, standing, mark);
	return verdict;
}

/*
 * Advance the mark, as the scan shows it, to a token that has been chosen above it
 * (issue.c).  False: by now another stands there, and nothing is done or refused.
 */
bool
lockfence_try_advance(MarkScan *scan, const FenceCheck *check)
{
	Mark		mark;
	Standing	standing;
	bool		advanced = lock_and_write_mark(scan, check, &mark, &standing) == ACCEPTED;

	if (advanced)
		note_advance(scan, check, standing);
	return advanced;
}

/* Decide on the mark as the scan shows it. */
static Verdict
decide(MarkScan *scan, const FenceCheck *check, bool asked)
{
	if (scan->found)
	{
		/* what this transaction advanced itself, it remembers */
		Mark		mark = standing_mark(check, (Mark) {scan->token, "mark", scan});

		if (!passes(check, compare(check, mark.token), mark))
			return REFUSED;
		if (lockfence_compare(check->token, scan->token) == EQUAL)
			return hold_mark(scan, check);
	}
	if (!asked && lockfence_has_validator(check))
		return ASK_VALIDATOR;
	return advance_mark(scan, check);
}

/* Has this transaction been accepted with that token before, and is nothing above it? */
static bool
is_remembered(const FenceCheck *check)
{
	const HeldToken *held = lockfence_held_token(check->write.resource);

	return held != NULL && held->token == check->token && !held->refused &&
		passes_stored(check) && (held->advanced || !check->single_use);
}

/*
 * One attempt to decide: read the mark and judge the token, or wait for the
 * transaction that is changing the mark.
 */
static Verdict
attempt(const ResourceKey *resource, const FenceCheck *check, bool asked,
		FenceToken *previous)
{
	Verdict		verdict = START_OVER;
	MarkScan	scan;

	CHECK_FOR_INTERRUPTS();
	lockfence_mark_begin(&scan, resource);
	*previous = scan.token;
	if (!TransactionIdIsValid(scan.changing))
		verdict = decide(&scan, check, asked);
	else if (!asked && lockfence_is_stale_change(scan.pending, check->token) && lockfence_has_validator(check))
		verdict = ASK_VALIDATOR;
	lockfence_mark_end(&scan);
	if (verdict == START_OVER && TransactionIdIsValid(scan.changing))
		lockfence_wait_for_change(scan.changing, scan.pending, check);
	return verdict;
}

/*
 * May the token write to the resource?  Advances the mark where the token is
 * higher, and holds it to the end of the transaction.  Returns whether it was
 * accepted, which is always so unless the fence is advisory, and the mark as
 * it was before (0: none).
 *
 * A validator is asked once, about a token that would advance the mark, and
 * before any lock is taken or a stale holder is ended.
 */
static bool
check_and_advance(const FenceCheck *check, FenceToken *previous)
{
	Verdict		verdict;
	ResourceKey key;
	bool		asked = false;

	*previous = check->token;
	if (is_remembered(check))
		return true;
	if (!lockfence_check_epoch(&check->write, check->token))
	{
		*previous = 0;			/* the mark was not looked at */
		return false;
	}

	lockfence_set_resource_key(&key, check->write.resource);
	if (hold_cached_mark(&key, check))
		return true;
	do
	{
		verdict = attempt(&key, check, asked, previous);
		if (verdict == ASK_VALIDATOR)
		{
			if (!lockfence_ask_validator(check))
				return false;
			asked = true;
		}
	} while (verdict == START_OVER || verdict == ASK_VALIDATOR);
	return verdict == ACCEPTED;
}

/* The mark in the row has been advanced: not if it is inserted, nor for the halves of a move, beside their UPDATE. */
static void
note_row_advance(const FenceCheck *check)
{
	lockfence_commit_durably();
	lockfence_count(check->write.rel, LOCKFENCE_ADVANCED);
	if (!check->needs_none && check->tokens->carried == 0)
		lockfence_note_row_advance(check->write.rel, check->write.row,
								   (MarkChange) {check->stored, check->token, lockfence_way_of_token(check)});
}

/* May the token write to the row, which has its mark in itself? */
static bool
check_row(const FenceCheck *check)
{
	Mark		mark = {check->stored, "mark"};
	Standing	standing = compare(check, check->stored);

	if (!lockfence_check_epoch(&check->write, check->token))
		return false;
	if (standing == REPEATED && check->own_row)
		return true;
	if (!passes(check, standing, mark))
		return false;
	if (standing == HIGHER && !check->only_compares)
	{
		if (!lockfence_vouch_for(&check->write, check->token))
			return false;
		note_row_advance(check);
	}
	return true;
}

/*
 * May a write go on that presents these tokens, as far as that can be told without
 * its resource?  Tells which of them counts (0: there is none).
 */
bool
lockfence_admit_tokens(FenceCheck *check, const PresentedTokens *tokens)
{
	check->tokens = tokens;
	return !(tokens->is_settled && check->write.advisory) &&
		lockfence_pass_gate(&check->write) &&
		lockfence_pass_record(check->fence, &check->write) &&
		lockfence_choose_token(check, tokens);
}

/* What limits the token that counts: not what limits an ambient one that the fence does not take. */
static TokenLimit
limit_of(const FenceCheck *check, const PresentedTokens *tokens)
{
	bool		counts = check->token == tokens->named || check->token == tokens->ambient ||
		check->token == tokens->given;

	return counts ? tokens->limit : (TokenLimit) {0};
}

/*
 * May a write go on that presents these tokens?  Returns the one that was accepted,
 * and what was the mark before it (0: none); 0 where it goes on without, as the
 * fence allows.  Every function that is called for a write asks this, and nothing else.
 */
FenceToken
lockfence_admit(FenceCheck *check, const PresentedTokens *tokens, FenceToken *previous)
{
	bool		passed = false;

	/* a row that is new has no mark to compare with */
	if (lockfence_counted_ambient(check, tokens) != 0 && !check->needs_none)
		lockfence_check_ambient_token();
	if (!lockfence_admit_tokens(check, tokens))
		return 0;
	if (check->token == 0)
		lockfence_settle_missing(check);
	else if (check->write.resource != NULL)
		passed = check_and_advance(check, previous);
	else
		passed = check_row(check);
	if (passed && (tokens->limit.until != 0 || lockfence_limit_leases))
		passed = lockfence_keep_limit(&check->write, check->token, limit_of(check, tokens));
	return passed ? check->token : 0;
}

/* Let a write go on that need not present a token, if the database and the table are as they should be. */
void
lockfence_pass_unprotected(const Fence *fence, const FencedWrite *write)
{
	if (lockfence_pass_gate(write) && lockfence_pass_record(fence, write))
		lockfence_count(write->rel, LOCKFENCE_UNPROTECTED);
}

/*
 * Raise the mark to the token, if it is lower, without judging the token: for
 * what was decided elsewhere.  Returns whether the mark was written, and what
 * stood before it: the mark, or else the floor (0: neither).
 */
bool
lockfence_raise_mark(const char *resource, FenceToken token, AdvanceWay way, FenceToken *before)
{
	FenceCheck	check = {.write.resource = resource,.token = token,.by_administrator = true};
	Mark		mark;
	Standing	standing = EQUAL;
	Verdict		verdict;
	ResourceKey key;
	MarkScan	scan;

	lockfence_set_resource_key(&key, resource);
	do
	{
		CHECK_FOR_INTERRUPTS();
		verdict = START_OVER;
		lockfence_mark_begin(&scan, &key);
		if (!TransactionIdIsValid(scan.changing))
			verdict = scan.found && compare(&check, scan.token) != HIGHER ? REFUSED :
				lock_and_write_mark(&scan, &check, &mark, &standing);
		lockfence_mark_end(&scan);
		if (TransactionIdIsValid(scan.changing))
			lockfence_wait_for_change(scan.changing, scan.pending, &check);
		*before = scan.found ? scan.token : lockfence_state_floor();
	} while (verdict == START_OVER);
	if (verdict != ACCEPTED)
		return false;
	lockfence_forget_token(resource);
	if (standing == HIGHER)
		lockfence_note_change(&key, (MarkChange) {scan.token, token, way});
	return true;
}
