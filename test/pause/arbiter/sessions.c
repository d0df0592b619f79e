/*
 * sessions.c
 *	  A session is an etcd lease with an owner; every hold hangs on it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "arbiter.h"

#define MIN_TTL_S 2
#define MAX_TTL_S 3600
#define PAUSE_US 20000

static etcd_result
grant_lease(int64_t ttl, int64_t *lease)
{
	json_t	   *body = json_pack("{s:I}", "TTL", (json_int_t) ttl);
	json_t	   *answer = NULL;
	etcd_result result = etcd_call("/v3/lease/grant", body, &answer);

	json_decref(body);
	if (result == ETCD_OK)
		*lease = json_int64(answer, "ID");
	json_decref(answer);
	return result;
}

static etcd_result
put_session(int64_t lease, const char *identity, int64_t ttl)
{
	json_t	   *txn = txn_new();
	char		key[64];
	txn_answer	answer;
	etcd_result result;

	snprintf(key, sizeof key, "/session/%" PRId64, lease);
	txn_put(txn, key, json_pack("{s:s, s:I}", "identity", identity, "ttl", (json_int_t) ttl), lease);
	result = txn_run(txn, &answer);
	txn_free(&answer);
	return result;
}

/* A lease that was granted and not answered runs out by itself. */
reply
session_open(const char *identity, json_t *in)
{
	int64_t		ttl = json_int64(in, "ttl");
	int64_t		until = clock_us() + conf.deadline_ms * INT64_C(1000);
	int64_t		lease = 0;
	char		id[32];
	etcd_result result;

	if (ttl < MIN_TTL_S || ttl > MAX_TTL_S)
		return reply_error(400, "bad_ttl", "ttl must be %d to %d seconds", MIN_TTL_S, MAX_TTL_S);
	while ((result = grant_lease(ttl, &lease)) != ETCD_OK && clock_us() < until)
		sleep_us(PAUSE_US);
	if (result == ETCD_OK)
		while ((result = put_session(lease, identity, ttl)) != ETCD_OK && clock_us() < until)
			sleep_us(PAUSE_US);
	if (result != ETCD_OK)
		return reply_for(result);
	snprintf(id, sizeof id, "%" PRId64, lease);
	return reply_ok(json_pack("{s:s, s:I, s:I}", "session", id, "ttl", (json_int_t) ttl,
							  "epoch", (json_int_t) seal_highest_epoch()));
}

/* A lease that is gone is answered with success and no TTL. */
static etcd_result
keep_alive(int64_t lease, int64_t *ttl)
{
	char		id[32];
	json_t	   *body;
	json_t	   *answer = NULL;
	json_t	   *result_part;
	etcd_result result;

	snprintf(id, sizeof id, "%" PRId64, lease);
	body = json_pack("{s:s}", "ID", id);
	result = etcd_call("/v3/lease/keepalive", body, &answer);
	json_decref(body);
	if (result == ETCD_OK)
	{
		result_part = json_object_get(answer, "result");
		*ttl = json_int64(result_part, "TTL");
		/* answered by one member from what it has: its revision proves nothing */
		if (result_part)
			seal_observe(json_object_get(result_part, "header"), -1);
		else
			result = ETCD_UNKNOWN;	/* an error in the stream */
	}
	json_decref(answer);
	return result;
}

static etcd_result
renew_once(int64_t session, int64_t *ttl, look *seen)
{
	etcd_result result = keep_alive(session, ttl);

	/* linearizable, so that a restored cluster cannot renew what it revived */
	return result == ETCD_OK ? look_up(NULL, session, seen) : result;
}

reply
session_renew(const char *identity, json_t *in)
{
	int64_t		until = clock_us() + conf.deadline_ms * INT64_C(1000);
	int64_t		session;
	int64_t		ttl = 0;
	look		seen;
	etcd_result result;
	reply		bad;
	bool		found;
	bool		ours;

	if (!input_id(in, "session", &session, &bad))
		return bad;
	while ((result = renew_once(session, &ttl, &seen)) != ETCD_OK && clock_us() < until)
		sleep_us(PAUSE_US);
	if (result != ETCD_OK)
	{
		count(COUNT_RENEWAL_FAILED);
		return reply_for(ETCD_UNSENT);
	}
	found = seen.session.found && ttl > 0;
	ours = look_is_ours(&seen, identity);
	look_free(&seen);
	if (!found)
	{
		count(COUNT_RENEWAL_GONE);
		return reply_error(410, "session_gone", "the session is over");
	}
	if (!ours)
		return reply_error(403, "not_yours", "the session belongs to another identity");
	count(COUNT_RENEWED);
	return reply_ok(json_pack("{s:I}", "ttl", (json_int_t) ttl));
}
