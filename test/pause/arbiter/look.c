/*
 * look.c
 *	  Epoch, session and lock, read together at one revision.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arbiter.h"

/* resource NULL and session 0 leave that part out. */
etcd_result
look_up(const char *resource, int64_t session, look *seen)
{
	json_t	   *txn = txn_new();
	char		key[MAX_RESOURCE + 32];
	txn_answer	answer;
	etcd_result result;
	kv			epoch;
	int			nth = 1;

	memset(seen, 0, sizeof *seen);
	txn_range(txn, true, "/sys/epoch");
	if (session)
	{
		snprintf(key, sizeof key, "/session/%" PRId64, session);
		txn_range(txn, true, key);
	}
	if (resource)
	{
		snprintf(key, sizeof key, "/lock/%s", resource);
		txn_range(txn, true, key);
	}
	result = txn_run(txn, &answer);
	if (result != ETCD_OK)
		return result;
	epoch = txn_kv(&answer, 0);
	seal_observe_epoch(&epoch, json_object_get(answer.whole, "header"));
	seen->epoch = (epoch_info) {json_int64(epoch.value, "epoch"), epoch.mod_revision};
	kv_free(&epoch);
	if (session)
		seen->session = txn_kv(&answer, nth++);
	if (resource)
		seen->lock = txn_kv(&answer, nth);
	txn_free(&answer);
	return ETCD_OK;
}

void
look_free(look *seen)
{
	kv_free(&seen->lock);
	kv_free(&seen->session);
}

bool
look_is_ours(const look *seen, const char *identity)
{
	const char *owner = json_string_value(json_object_get(seen->session.value, "identity"));

	return owner && strcmp(owner, identity) == 0;
}
