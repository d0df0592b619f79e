/*
 * client.c
 *	  One holder of the swarm: acquires its lock, writes once, and holds it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../holder/present.h"
#include "swarm.h"

static void
on_fence(void *arg, const char *why)
{
	client	   *c = arg;

	atomic_fetch_add(&c->swarm->fenced, 1);
	record(&c->history, "fence", "ok", "{s:s, s:s}", "lock", c->lock, "why", why);
}

static void
on_lease(void *arg, const char *what, const char *session, int64_t sent_us, int64_t ttl_us)
{
	client	   *c = arg;

	record(&c->history, what, "ok", "{s:s, s:I, s:I}", "session", session,
		   "sent", (json_int_t) sent_us, "ttl", (json_int_t) ttl_us);
}

void
client_init(client *c, swarm *s, int number)
{
	c->swarm = s;
	c->number = number;
	c->history.fd = s->history.fd;
	snprintf(c->history.who, sizeof c->history.who, "%.20s-%d", s->generation, number);
	snprintf(c->ca, sizeof c->ca, "%s/ca.pem", s->certs);
	snprintf(c->cert, sizeof c->cert, "%s/client-%d.pem", s->certs, number);
	snprintf(c->key, sizeof c->key, "%s/client-%d.key", s->certs, number);
	snprintf(c->lock, sizeof c->lock, "%.40s-%d", s->locks, number);
	c->seed = (unsigned) clock_us() * 31 + number;
}

/* Everybody starts at once: full jitter from the second attempt on. */
static lf_holder *
open_holder(client *c)
{
	lf_options	options = {
		.url = c->swarm->url, .ca = c->ca, .cert = c->cert, .key = c->key,
		.ttl_s = c->swarm->ttl_s, .open_wait_ms = 60000, .on_fence = on_fence, .on_lease = on_lease, .arg = c
	};
	char		message[200];
	int64_t		ceiling = 250000;

	while (!atomic_load(&c->swarm->over))
	{
		lf_holder  *h = lf_holder_open(&options, message, sizeof message);

		if (h)
			return h;
		sleep_us(rand_r(&c->seed) % ceiling);
		if (ceiling < 8000000)
			ceiling *= 2;
	}
	return NULL;
}

static bool
acquire(client *c, lf_holder *h, int64_t *token)
{
	char		id[96];
	char		text[32];
	lf_result	result = LF_FAILED;

	snprintf(id, sizeof id, "%s-%lx", c->history.who, (long) clock_us());
	record(&c->history, "acquire", "call", "{s:s, s:s}", "id", id, "lock", c->lock);
	for (int attempt = 0; !atomic_load(&c->swarm->over); attempt++)
	{
		result = lf_holder_try(h, c->lock, id, 0, token);
		if (result == LF_OK || result == LF_GONE || lf_holder_check(h) == LF_FENCED)
			break;
		sleep_us(lf_holder_retry_ms(h, attempt) * INT64_C(1000));
	}
	snprintf(text, sizeof text, "%" PRId64, result == LF_OK ? *token : 0);
	record(&c->history, "acquire", result == LF_OK ? "ok" : "unknown", "{s:s, s:s, s:s, s:s}",
		   "id", id, "lock", c->lock, "token", text, "session", lf_holder_session(h));
	return result == LF_OK;
}

static const char *
phase_of(const char *state)
{
	return strcmp(state, "00000") == 0 ? "ok" : strncmp(state, "08", 2) == 0 ? "unknown" : "no";
}

static void
write_row(client *c, const char *token)
{
	const char *values[2] = {c->lock, token};
	PGresult   *res = PQexecParams(c->swarm->conn, "UPDATE pause_kit.account SET n = n + 1,"
								   " fence = $2::bigint WHERE name = $1 RETURNING n",
								   2, NULL, values, NULL, NULL, 0);
	const char *state = PQresultStatus(res) == PGRES_TUPLES_OK ? "00000" :
		PQresultErrorField(res, PG_DIAG_SQLSTATE);
	json_int_t	n = PQntuples(res) == 1 ? atoll(PQgetvalue(res, 0, 0)) : -1;

	state = state ? state : "08006";
	record(&c->history, "write", phase_of(state), "{s:s+, s:s, s:s, s:s, s:I}",
		   "id", c->history.who, "-w", "lock", c->lock, "token", token, "code", state, "n", n);
	PQclear(res);
}

/* Presents and commits, then writes. */
static void
use_lock(client *c, int64_t token)
{
	char		text[32];
	char		state[6];

	snprintf(text, sizeof text, "%" PRId64, token);
	pthread_mutex_lock(&c->swarm->conn_mutex);
	record(&c->history, "present", "call", "{s:s+, s:s, s:s}", "id", c->history.who, "-p",
		   "lock", c->lock, "token", text);
	lf_present(c->swarm->conn, c->lock, token, state);
	record(&c->history, "present", phase_of(state), "{s:s+, s:s, s:s, s:s}", "id", c->history.who,
		   "-p", "lock", c->lock, "token", text, "code", state);
	record(&c->history, "write", "call", "{s:s+, s:s, s:s}", "id", c->history.who, "-w",
		   "lock", c->lock, "token", text);
	write_row(c, text);
	pthread_mutex_unlock(&c->swarm->conn_mutex);
}

static void
hold(client *c, lf_holder *h)
{
	while (!atomic_load(&c->swarm->over) && lf_holder_check(h) != LF_FENCED)
		sleep_us(1000000);
}

void *
client_run(void *arg)
{
	client	   *c = arg;

	while (!atomic_load(&c->swarm->over))
	{
		lf_holder  *h = open_holder(c);
		int64_t		token;

		if (h == NULL)
			break;
		if (acquire(c, h, &token))
		{
			use_lock(c, token);
			hold(c, h);
		}
		atomic_fetch_add(&c->swarm->renewals_shed, lf_holder_renewals_shed(h));
		atomic_fetch_add(&c->swarm->renewals_failed, lf_holder_renewals_failed(h));
		lf_holder_close(h);
	}
	return NULL;
}
