/*
 * epoch.c
 *	  Advancing the epoch: what opens a sealed arbiter again.
 *
 * The new epoch is above every epoch that etcd, this arbiter or PostgreSQL knows
 * of, so every token under it is above every token ever accepted.  The same txn
 * drops every hold and session, for a restored cluster revives dead ones.
 */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "arbiter.h"

/* The highest token PostgreSQL has accepted; 0 none, -1 it does not answer. */
int64_t
epoch_floor_token(char *problem, size_t size)
{
	PGconn	   *conn = PQconnectdb(conf.floor_dsn);
	PGresult   *res = PQexec(conn, "SELECT coalesce(max(token)::bigint, 0) FROM lockfence.mark");
	int64_t		floor = -1;

	if (PQresultStatus(res) != PGRES_TUPLES_OK || !token_parse(PQgetvalue(res, 0, 0), &floor))
	{
		floor = -1;
		snprintf(problem, size, "%.150s", PQerrorMessage(conn));
	}
	PQclear(res);
	PQfinish(conn);
	return floor;
}

typedef struct advance
{
	int64_t		epoch;
	int64_t		least;			/* the highest epoch known; the new one is above */
	int64_t		mod_revision;	/* of /sys/epoch, 0: there is none */
	char		cluster[32];
} advance;

static etcd_result
read_current(advance *a)
{
	json_t	   *txn = txn_new();
	txn_answer	answer;
	etcd_result result;
	const char *cluster;
	kv			item;

	txn_range(txn, true, "/sys/epoch");
	result = txn_run(txn, &answer);
	if (result != ETCD_OK)
		return result;
	cluster = json_string_value(json_object_get(json_object_get(answer.whole, "header"), "cluster_id"));
	snprintf(a->cluster, sizeof a->cluster, "%s", cluster ? cluster : "");
	item = txn_kv(&answer, 0);
	a->mod_revision = item.mod_revision;
	a->least = json_int64(item.value, "epoch");
	kv_free(&item);
	txn_free(&answer);
	return ETCD_OK;
}

static void
raise_least(advance *a, int64_t epoch)
{
	if (epoch > a->least)
		a->least = epoch;
}

static etcd_result
write_epoch(const advance *a, txn_answer *answer)
{
	json_t	   *txn = txn_new();

	txn_compare(txn, "/sys/epoch", "MOD", "mod_revision", a->mod_revision);
	txn_put(txn, "/sys/epoch", json_pack("{s:I, s:s}", "epoch", (json_int_t) a->epoch,
										 "cluster", a->cluster), 0);
	txn_delete(txn, "/lock/", true);
	txn_delete(txn, "/session/", true);
	return txn_run(txn, answer);
}

static reply
do_advance(const advance *a, const char *identity, const char *reason)
{
	txn_answer	answer;
	etcd_result result;
	bool		done;
	int64_t		revision;

	if (!audit(identity, "advance-epoch", NULL, reason, json_integer(a->least),
			   json_integer(a->epoch)))
		return reply_error(500, "audit_unavailable", "the audit log cannot be written");
	result = write_epoch(a, &answer);
	done = answer.succeeded;
	revision = answer.revision;
	txn_free(&answer);
	if (result != ETCD_OK)
		return reply_for(result);
	if (!done)
		return reply_error(409, "changed", "the epoch was advanced meanwhile");
	seal_open(a->epoch, a->cluster, revision);
	return reply_ok(json_pack("{s:I, s:I}", "epoch", (json_int_t) a->epoch,
							  "before", (json_int_t) a->least));
}

reply
epoch_advance(const char *identity, json_t *in)
{
	advance		a = {0};
	const char *reason;
	char		problem[160];
	int64_t		floor = 0;
	reply		r;

	if (!is_admin(identity))
		return reply_error(403, "not_admin", "only an administrator may do this");
	if (!input_reason(in, &reason, &r))
		return r;
	if (read_current(&a) != ETCD_OK)
		return reply_for(ETCD_UNSENT);
	if (conf.floor_dsn)
		floor = epoch_floor_token(problem, sizeof problem);
	if (floor < 0)
		return reply_error(503, "floor_unknown", "the floor in PostgreSQL cannot be read: %s", problem);
	raise_least(&a, token_epoch(floor));
	raise_least(&a, token_epoch(json_int64(in, "floor")));
	raise_least(&a, seal_highest_epoch());
	a.epoch = json_object_get(in, "epoch") ? json_int64(in, "epoch") : a.least + 1;
	if (a.epoch <= a.least || a.epoch > TOKEN_MAX_EPOCH)
		return reply_error(409, "epoch_too_low", "the epoch must be above %" PRId64 " and at most %d",
						   a.least, TOKEN_MAX_EPOCH);
	return do_advance(&a, identity, reason);
}
