/*
 * sessions.c
 *	  A session is an etcd lease with an owner; every hold hangs on it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "arbiter.h"

#define MIN_TTL_S 2
#define MAX_TTL_S 3600
#define PAUSE_US 20000
#define KNOWN_SESSIONS 16384

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

/*
 * Whose a session is does not change, and an advance of the epoch ends it: so an
 * owner read under the present epoch need not be read again.
 */
typedef struct known_session
{
	int64_t		id;
	int64_t		epoch;
	char		identity[MAX_IDENTITY + 1];
} known_session;

static known_session known[KNOWN_SESSIONS];
static pthread_mutex_t known_mutex = PTHREAD_MUTEX_INITIALIZER;

static known_session *
slot_of(int64_t session)
{
	return &known[((uint64_t) session * UINT64_C(0x9e3779b97f4a7c15) >> 32) % KNOWN_SESSIONS];
}

static bool
is_known(int64_t session, int64_t epoch, const char *identity)
{
	known_session *slot = slot_of(session);
	bool		good;

	pthread_mutex_lock(&known_mutex);
	good = slot->id == session && slot->epoch == epoch && strcmp(slot->identity, identity) == 0;
	pthread_mutex_unlock(&known_mutex);
	return good;
}

static void
remember(int64_t session, int64_t epoch, const char *identity)
{
	known_session *slot = slot_of(session);

	pthread_mutex_lock(&known_mutex);
	slot->id = session;
	slot->epoch = epoch;
	snprintf(slot->identity, sizeof slot->identity, "%s", identity);
	pthread_mutex_unlock(&known_mutex);
}

typedef enum owner
{
	OURS, NOT_OURS, NOBODYS
} owner;

static etcd_result
find_owner(int64_t session, const char *identity, int64_t epoch, owner *whose)
{
	look		seen;
	etcd_result result;

	*whose = OURS;
	if (is_known(session, epoch, identity))
		return ETCD_OK;
	result = look_up(NULL, session, &seen);
	if (result != ETCD_OK)
		return result;
	*whose = !seen.session.found ? NOBODYS : look_is_ours(&seen, identity) ? OURS : NOT_OURS;
	if (*whose == OURS)
		remember(session, seen.epoch.epoch, identity);
	look_free(&seen);
	return result;
}

static etcd_result
renew_once(int64_t session, const char *identity, int64_t *ttl, owner *whose)
{
	int64_t		epoch;
	etcd_result result = renew_lease(session, ttl, &epoch);

	return result == ETCD_OK ? find_owner(session, identity, epoch, whose) : result;
}

reply
session_renew(const char *identity, json_t *in)
{
	int64_t		until = clock_us() + conf.deadline_ms * INT64_C(1000);
	int64_t		session;
	int64_t		ttl = 0;
	owner		whose = NOBODYS;
	etcd_result result;
	reply		bad;

	if (!input_id(in, "session", &session, &bad))
		return bad;
	while ((result = renew_once(session, identity, &ttl, &whose)) != ETCD_OK && clock_us() < until)
		sleep_us(PAUSE_US);
	if (result != ETCD_OK)
	{
		count(COUNT_RENEWAL_FAILED);
		return reply_for(ETCD_UNSENT);
	}
	if (whose == NOBODYS || ttl <= 0)
	{
		count(COUNT_RENEWAL_GONE);
		return reply_error(410, "session_gone", "the session is over");
	}
	if (whose == NOT_OURS)
		return reply_error(403, "not_yours", "the session belongs to another identity");
	count(COUNT_RENEWED);
	return reply_ok(json_pack("{s:I}", "ttl", (json_int_t) ttl));
}
