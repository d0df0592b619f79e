/*
 * locks.c
 *	  Release, validate, describe, force-release.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arbiter.h"

#define PAUSE_US 20000

static int64_t
token_of(const kv *lock)
{
	return token_make(json_int64(lock->value, "epoch"), lock->create_revision);
}

static etcd_result
look_patiently(const char *resource, int64_t session, look *seen)
{
	int64_t		until = clock_us() + conf.deadline_ms * INT64_C(1000);
	etcd_result result;

	while ((result = look_up(resource, session, seen)) != ETCD_OK && clock_us() < until)
		sleep_us(PAUSE_US);
	return result;
}

/*
 * Deletes the lock under this very grant and lease.  The session's key is
 * written too: an acquire of this session that is still on its way then fails.
 */
static etcd_result
delete_lock(const char *resource, int64_t session, const look *seen, txn_answer *answer)
{
	json_t	   *txn = txn_new();
	char		lock_key[MAX_RESOURCE + 32];
	char		session_key[64];

	snprintf(lock_key, sizeof lock_key, "/lock/%s", resource);
	snprintf(session_key, sizeof session_key, "/session/%" PRId64, session);
	txn_compare(txn, lock_key, "CREATE", "create_revision", seen->lock.create_revision);
	txn_compare(txn, lock_key, "LEASE", "lease", session);
	txn_compare(txn, session_key, "MOD", "mod_revision", seen->session.mod_revision);
	txn_delete(txn, lock_key, false);
	txn_put(txn, session_key, json_incref(seen->session.value), session);
	return txn_run(txn, answer);
}

typedef struct release
{
	const char *identity;
	const char *resource;
	int64_t		session;
	int64_t		token;
	bool		unknown;
} release;

static bool
try_release(release *l, const look *seen, reply *r)
{
	bool		mine = seen->lock.found && seen->lock.lease == l->session &&
		token_of(&seen->lock) == l->token;
	txn_answer	answer;
	etcd_result result;
	bool		done;

	if (seen->session.found && !look_is_ours(seen, l->identity))
		*r = reply_error(403, "not_yours", "the session belongs to another identity");
	else if (!mine && l->unknown && seen->session.found)
		*r = reply_ok(json_pack("{s:b}", "released", 1));	/* the first attempt did it */
	else if (!mine)
		*r = reply_error(409, "not_held", "the session does not hold the lock under that token");
	else
	{
		result = delete_lock(l->resource, l->session, seen, &answer);
		done = result == ETCD_OK && answer.succeeded;
		l->unknown = l->unknown || result == ETCD_UNKNOWN;
		txn_free(&answer);
		if (done)
			*r = reply_ok(json_pack("{s:b}", "released", 1));
		return done;
	}
	return true;
}

reply
lock_release(const char *identity, json_t *in)
{
	release		l = {.identity = identity};
	int64_t		until = clock_us() + conf.deadline_ms * INT64_C(1000);
	reply		r;
	bool		done = false;

	if (!input_resource(in, &l.resource, &r) || !input_id(in, "session", &l.session, &r) ||
		!input_id(in, "token", &l.token, &r))
		return r;
	while (!done && clock_us() < until)
	{
		look		seen;

		if (look_up(l.resource, l.session, &seen) != ETCD_OK)
		{
			sleep_us(PAUSE_US);
			continue;
		}
		done = try_release(&l, &seen, &r);
		look_free(&seen);
	}
	if (!done)
		return reply_for(l.unknown ? ETCD_UNKNOWN : ETCD_UNSENT);
	if (r.status == 200)
		count(COUNT_RELEASED);
	return r;
}

/* What is left of the lease, a lower bound; -1 if it is gone or unknown. */
static int64_t
expires_in_ms(int64_t lease)
{
	char		id[32];
	json_t	   *body;
	json_t	   *answer = NULL;
	int64_t		ms = -1;

	snprintf(id, sizeof id, "%" PRId64, lease);
	body = json_pack("{s:s}", "ID", id);
	if (etcd_call("/v3/kv/lease/timetolive", body, &answer) == ETCD_OK)
		ms = json_int64(answer, "TTL") * 1000;
	json_decref(body);
	json_decref(answer);
	return ms;
}

reply
lock_validate(const char *identity, json_t *in)
{
	const char *resource;
	int64_t		token;
	char		text[32];
	look		seen;
	etcd_result result;
	reply		r;
	int64_t		left = 0;
	bool		valid;

	(void) identity;
	if (!input_resource(in, &resource, &r) || !input_id(in, "token", &token, &r))
		return r;
	result = look_patiently(resource, 0, &seen);
	if (result != ETCD_OK)
		return reply_for(ETCD_UNSENT);
	valid = seen.lock.found && token_of(&seen.lock) == token;
	if (valid)
		left = expires_in_ms(seen.lock.lease);
	valid = valid && left >= 0;
	snprintf(text, sizeof text, "%" PRId64, token);
	r = reply_ok(json_pack("{s:s, s:s, s:b, s:I, s:I}", "resource", resource, "token", text,
						   "valid", valid, "epoch", (json_int_t) seen.epoch.epoch,
						   "expires_in_ms", (json_int_t) (valid ? left : 0)));
	look_free(&seen);
	return r;
}

reply
lock_describe(const char *identity, json_t *in)
{
	const char *resource;
	char		text[32];
	look		seen;
	reply		r;
	const char *holder;

	(void) identity;
	if (!input_resource(in, &resource, &r))
		return r;
	if (look_patiently(resource, 0, &seen) != ETCD_OK)
		return reply_for(ETCD_UNSENT);
	r = reply_ok(json_pack("{s:s, s:b, s:I}", "resource", resource, "held", seen.lock.found,
						   "epoch", (json_int_t) seen.epoch.epoch));
	if (seen.lock.found)
	{
		holder = json_string_value(json_object_get(seen.lock.value, "identity"));
		snprintf(text, sizeof text, "%" PRId64, token_of(&seen.lock));
		json_object_set_new(r.body, "holder", json_string(holder ? holder : ""));
		json_object_set_new(r.body, "token", json_string(text));
		json_object_set_new(r.body, "expires_in_ms",
							json_integer(expires_in_ms(seen.lock.lease)));
	}
	look_free(&seen);
	return r;
}

static reply
delete_by_force(const char *identity, const char *resource, const char *reason, const look *seen)
{
	json_t	   *txn = txn_new();
	char		key[MAX_RESOURCE + 32];
	char		text[32];
	txn_answer	answer;
	etcd_result result;
	bool		done;

	snprintf(text, sizeof text, "%" PRId64, token_of(&seen->lock));
	if (!audit(identity, "force-release", resource, reason,
			   json_pack("{s:O, s:s}", "holder", json_object_get(seen->lock.value, "identity"),
						 "token", text), json_null()))
	{
		json_decref(txn);
		return reply_error(500, "audit_unavailable", "the audit log cannot be written");
	}
	snprintf(key, sizeof key, "/lock/%s", resource);
	txn_compare(txn, key, "CREATE", "create_revision", seen->lock.create_revision);
	txn_delete(txn, key, false);
	result = txn_run(txn, &answer);
	done = answer.succeeded;
	txn_free(&answer);
	if (result != ETCD_OK)
		return reply_for(result);
	return done ? reply_ok(json_pack("{s:b, s:s}", "released", 1, "token", text)) :
		reply_error(409, "changed", "the lock changed hands meanwhile; look again");
}

reply
lock_force_release(const char *identity, json_t *in)
{
	const char *resource;
	const char *reason;
	look		seen;
	reply		r;

	if (!is_admin(identity))
		return reply_error(403, "not_admin", "only an administrator may do this");
	if (!input_resource(in, &resource, &r) || !input_reason(in, &reason, &r))
		return r;
	if (look_patiently(resource, 0, &seen) != ETCD_OK)
		return reply_for(ETCD_UNSENT);
	r = seen.lock.found ? delete_by_force(identity, resource, reason, &seen) :
		reply_error(404, "not_held", "the lock is not held");
	look_free(&seen);
	return r;
}
