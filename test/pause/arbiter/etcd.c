/*
 * etcd.c
 *	  One request to etcd's v3 JSON gateway, and which member gets it.
 *
 * A scout looks every quarter of a second for the member that calls itself
 * leader, so that a cut-off leader is left without waiting for each request to
 * find out by itself.  Which member answers is a matter of speed only: every
 * read and every txn is linearizable.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../common/fetch.h"
#include "arbiter.h"

#define SCOUT_EVERY_US 250000
#define SCOUT_TIMEOUT_MS 300

static atomic_int current;
static atomic_bool stopping;
static pthread_t scout;
static pthread_key_t handle_key;

static void
close_handle(void *f)
{
	fetch_close(f);
}

static fetch *
thread_handle(void)
{
	fetch	   *f = pthread_getspecific(handle_key);

	if (f == NULL)
	{
		f = fetch_open(NULL);
		pthread_setspecific(handle_key, f);
	}
	return f;
}

/*
 * etcd's own words for "not done, and never will be".  Everything else it says
 * with an error, "request timed out" above all, leaves the outcome open.
 */
static bool
is_definite(const char *error)
{
	static const char *const definite[] = {
		"requested lease not found", "no leader", "duplicate key given",
		"key is not provided", "lease already exists", "too many requests"
	};

	for (size_t i = 0; i < sizeof definite / sizeof *definite; i++)
		if (strstr(error, definite[i]))
			return true;
	return false;
}

static etcd_result
judge(fetch_result how, const fetch_answer *got)
{
	const char *error;

	if (how == FETCH_UNSENT)
		return ETCD_UNSENT;
	if (how == FETCH_UNKNOWN || got->json == NULL)
		return ETCD_UNKNOWN;
	if (got->status == 200)
		return ETCD_OK;
	error = json_string_value(json_object_get(got->json, "error"));
	return error && is_definite(error) ? ETCD_REFUSED : ETCD_UNKNOWN;
}

static void
leave_member(int from)
{
	int			next = (from + 1) % conf.nendpoints;

	atomic_compare_exchange_strong(&current, &from, next);
}

int
etcd_endpoint(void)
{
	return atomic_load(&current);
}

typedef fetch_result (*fetcher) (fetch *f, const char *url, json_t *body, long timeout_ms,
								 fetch_answer *answer);

static etcd_result
ask_member(fetcher fetch_it, const char *path, json_t *body, json_t **answer)
{
	int			member = etcd_endpoint();
	char		url[256];
	fetch_answer got;
	etcd_result result;

	snprintf(url, sizeof url, "%s%s", conf.endpoints[member], path);
	result = judge(fetch_it(thread_handle(), url, body, conf.etcd_timeout_ms, &got), &got);
	if (result == ETCD_OK)
		*answer = got.json;
	else
		json_decref(got.json);
	if (result == ETCD_UNSENT || result == ETCD_UNKNOWN)
		leave_member(member);
	return result;
}

etcd_result
etcd_call(const char *path, json_t *body, json_t **answer)
{
	return ask_member(fetch_json, path, body, answer);
}

etcd_result
etcd_stream(const char *path, json_t *messages, json_t **answers)
{
	return ask_member(fetch_stream, path, messages, answers);
}

/* The raft term under which this member calls itself leader, else -1. */
static int64_t
leader_term(fetch *f, int member)
{
	char		url[256];
	fetch_answer got;
	json_t	   *body = json_object();
	int64_t		term = -1;
	json_t	   *header;

	snprintf(url, sizeof url, "%s/v3/maintenance/status", conf.endpoints[member]);
	if (fetch_json(f, url, body, SCOUT_TIMEOUT_MS, &got) == FETCH_ANSWERED && got.status == 200)
	{
		header = json_object_get(got.json, "header");
		if (json_int64(got.json, "leader") != 0 &&
			json_equal(json_object_get(got.json, "leader"), json_object_get(header, "member_id")))
			term = json_int64(header, "raft_term");
	}
	json_decref(got.json);
	json_decref(body);
	return term;
}

static void
find_leader(fetch **handles)
{
	int64_t		best = -1;

	/* a leader cut off from the others goes on calling itself so for a while */
	for (int i = 0; i < conf.nendpoints; i++)
	{
		int			member = (etcd_endpoint() + i) % conf.nendpoints;
		int64_t		term = leader_term(handles[member], member);

		if (term > best)
		{
			best = term;
			atomic_store(&current, member);
		}
	}
}

static void *
run_scout(void *arg)
{
	fetch	   *handles[MAX_ENDPOINTS];

	(void) arg;
	for (int i = 0; i < conf.nendpoints; i++)
		handles[i] = fetch_open(NULL);
	while (!atomic_load(&stopping))
	{
		find_leader(handles);
		seal_save();
		sleep_us(SCOUT_EVERY_US);
	}
	for (int i = 0; i < conf.nendpoints; i++)
		fetch_close(handles[i]);
	return NULL;
}

void
etcd_start(void)
{
	pthread_key_create(&handle_key, close_handle);
	pthread_create(&scout, NULL, run_scout, NULL);
}

void
etcd_stop(void)
{
	atomic_store(&stopping, true);
	pthread_join(scout, NULL);
}
