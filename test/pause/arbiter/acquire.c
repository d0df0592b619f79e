/*
 * acquire.c
 *	  Granting a lock: one txn, whose outcome may stay unknown for a while.
 *
 * The txn says: the lock is free, the epoch is the one just read, and the
 * session is as just read.  Its revision, under that epoch, is the token.
 *
 * When no answer comes, the txn may have been done, may never be, or may yet be.
 * Asking again is safe because the request's name is stored in the lock: what an
 * earlier attempt was granted is found.  Before a definite "no" is given after an
 * unknown attempt, and with every release, the session's key is written again:
 * that makes an attempt which is still on its way fail when it arrives.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arbiter.h"

#define POLL_US 100000
#define PAUSE_US 20000

typedef struct attempt
{
	const char *identity;
	const char *resource;
	const char *request;
	int64_t		session;
	int64_t		wait_until;		/* for another holder to release */
	int64_t		give_up;		/* waiting for etcd */
	bool		unknown;		/* a txn of ours was not answered */
} attempt;

static reply
granted(const attempt *a, int64_t epoch, int64_t revision)
{
	char		token[32];

	count(COUNT_GRANTED);
	snprintf(token, sizeof token, "%" PRId64, token_make(epoch, revision));
	return reply_ok(json_pack("{s:s, s:s, s:I}", "resource", a->resource, "token", token,
							  "epoch", (json_int_t) epoch));
}

/* What a client cannot know goes into the history from here. */
static void
tell(const attempt *a, const char *what)
{
	record(&conf.history, what, "ok", "{s:s, s:s}", "id", a->request, "lock", a->resource);
}

/* So that a proof can cut the quorum while a grant is on its way. */
static void
wait_at_gate(const attempt *a)
{
	if (conf.gate == NULL || access(conf.gate, F_OK) != 0)
		return;
	tell(a, "gate");
	while (access(conf.gate, F_OK) == 0)
		sleep_us(1000);
}

static bool
is_same_request(const attempt *a, const look *seen)
{
	const char *request = json_string_value(json_object_get(seen->lock.value, "request"));

	return seen->lock.lease == a->session && request && strcmp(request, a->request) == 0;
}

static etcd_result
put_lock(const attempt *a, const look *seen, txn_answer *answer)
{
	json_t	   *txn = txn_new();
	char		key[MAX_RESOURCE + 32];
	char		session[64];

	snprintf(key, sizeof key, "/lock/%s", a->resource);
	snprintf(session, sizeof session, "/session/%" PRId64, a->session);
	txn_compare(txn, key, "CREATE", "create_revision", 0);
	txn_compare(txn, "/sys/epoch", "MOD", "mod_revision", seen->epoch.mod_revision);
	txn_compare(txn, session, "MOD", "mod_revision", seen->session.mod_revision);
	txn_put(txn, key, json_pack("{s:s, s:s, s:I}", "identity", a->identity, "request", a->request,
								"epoch", (json_int_t) seen->epoch.epoch), a->session);
	return txn_run(txn, answer);
}

/* True when r answers the request; false: look again. */
static bool
try_grant(attempt *a, const look *seen, reply *r)
{
	txn_answer	answer;
	etcd_result result;
	bool		done;

	wait_at_gate(a);
	result = put_lock(a, seen, &answer);
	done = result == ETCD_OK && answer.succeeded;
	if (done)
		*r = granted(a, seen->epoch.epoch, answer.revision);
	if (result == ETCD_UNKNOWN)
	{
		a->unknown = true;
		count(COUNT_AMBIGUOUS);
		tell(a, "unanswered");
	}
	txn_free(&answer);
	return done;
}

/* Makes an attempt that may still be on its way fail when it arrives. */
static void
settle_unknown(attempt *a, const look *seen)
{
	json_t	   *txn = txn_new();
	char		session[64];
	txn_answer	answer;

	snprintf(session, sizeof session, "/session/%" PRId64, a->session);
	txn_compare(txn, session, "MOD", "mod_revision", seen->session.mod_revision);
	txn_put(txn, session, json_incref(seen->session.value), a->session);
	if (txn_run(txn, &answer) == ETCD_OK && answer.succeeded)
		a->unknown = false;
	txn_free(&answer);
}

/* Sabotage: the lock is free, although its holder's lease is alive. */
static void
take_away(const attempt *a, const look *seen)
{
	json_t	   *txn = txn_new();
	char		key[MAX_RESOURCE + 32];
	txn_answer	answer;

	snprintf(key, sizeof key, "/lock/%s", a->resource);
	txn_compare(txn, key, "CREATE", "create_revision", seen->lock.create_revision);
	txn_delete(txn, key, false);
	txn_run(txn, &answer);
	txn_free(&answer);
}

static bool
judge_held(attempt *a, const look *seen, reply *r)
{
	if (is_same_request(a, seen))
	{
		/* by this attempt, or by one before it whose caller got no answer either */
		count(COUNT_AMBIGUOUS_APPLIED);
		tell(a, "found");
		*r = granted(a, json_int64(seen->lock.value, "epoch"), seen->lock.create_revision);
		return true;
	}
	if (conf.grants_twice)
	{
		take_away(a, seen);
		return false;
	}
	if (clock_us() < a->wait_until)
	{
		sleep_us(POLL_US);
		return false;
	}
	if (a->unknown)
	{
		settle_unknown(a, seen);
		return false;
	}
	count(COUNT_HELD);
	*r = reply_error(409, "held", "another session holds the lock");
	return true;
}

static bool
judge_look(attempt *a, const look *seen, reply *r)
{
	if (seal_is_sealed(NULL, 0))
		*r = reply_error(503, "sealed", "sealed");	/* http.c says why */
	else if (!seen->session.found)
		*r = reply_error(410, "session_gone", "the session is over");
	else if (!look_is_ours(seen, a->identity))
		*r = reply_error(403, "not_yours", "the session belongs to another identity");
	else if (seen->lock.found)
		return judge_held(a, seen, r);
	else
		return try_grant(a, seen, r);
	return true;
}

static reply
run_attempt(attempt *a)
{
	reply		r;

	for (;;)
	{
		look		seen;
		bool		done = false;

		if (look_up(a->resource, a->session, &seen) == ETCD_OK)
		{
			done = judge_look(a, &seen, &r);
			look_free(&seen);
		}
		else
			sleep_us(PAUSE_US);
		if (done)
			return r;
		if (clock_us() >= a->give_up)
			return reply_for(a->unknown ? ETCD_UNKNOWN : ETCD_UNSENT);
	}
}

static bool
read_attempt(attempt *a, json_t *in, reply *bad)
{
	int64_t		now = clock_us();
	int64_t		wait = json_int64(in, "wait_ms");

	if (!input_resource(in, &a->resource, bad) || !input_id(in, "session", &a->session, bad))
		return false;
	a->request = json_string_value(json_object_get(in, "request"));
	if (a->request == NULL || strlen(a->request) > 128)
	{
		*bad = reply_error(400, "bad_request_id", "request must be a string of at most 128 bytes");
		return false;
	}
	if (wait < 0 || wait > conf.max_wait_ms)
		wait = conf.max_wait_ms;
	a->wait_until = now + wait * 1000;
	a->give_up = a->wait_until + conf.deadline_ms * INT64_C(1000);
	return true;
}

reply
lock_acquire(const char *identity, json_t *in)
{
	static atomic_int running;
	attempt		a = {.identity = identity};
	reply		r;

	if (!read_attempt(&a, in, &r))
		return r;
	/* shed before anything is asked of etcd, so that renewals keep their share */
	if (atomic_fetch_add(&running, 1) >= conf.max_acquires)
	{
		count(COUNT_ACQUIRE_SHED);
		r = reply_error(503, "busy", "too many acquires at once");
		r.retry_after_s = 1;
	}
	else
		r = run_attempt(&a);
	atomic_fetch_sub(&running, 1);
	return r;
}
