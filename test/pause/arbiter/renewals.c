/*
 * renewals.c
 *	  Renewals in batches: one request to etcd renews all sessions that wait.
 *
 * A keepalive is a stream, so many leases fit in one request, which costs etcd
 * little more than one of them would.  After it, one linearizable look at the
 * epoch serves the whole batch: a renewal may be called good only after an
 * answer that was asked for after its keepalive, else a restored cluster could
 * renew what it revived.  A session that comes while a batch is under way is in the next.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "arbiter.h"

typedef struct waiting
{
	int64_t		lease;
	int64_t		ttl;			/* 0: the lease is gone */
	int64_t		epoch;
	etcd_result result;
	bool		done;
	struct waiting *next;
} waiting;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static waiting *queue;
static bool running;

static json_t *
messages_for(const waiting *batch)
{
	json_t	   *messages = json_array();
	char		id[32];

	for (; batch; batch = batch->next)
	{
		snprintf(id, sizeof id, "%" PRId64, batch->lease);
		json_array_append_new(messages, json_pack("{s:s}", "ID", id));
	}
	return messages;
}

/* Answers come in the order of the questions; a lease that is gone has no TTL. */
static void
read_answers(waiting *batch, json_t *answers)
{
	size_t		i = 0;

	for (; batch; batch = batch->next, i++)
	{
		json_t	   *part = json_object_get(json_array_get(answers, i), "result");

		batch->result = part && json_int64(part, "ID") == batch->lease ? ETCD_OK : ETCD_UNKNOWN;
		batch->ttl = json_int64(part, "TTL");
		/* answered by one member from what it has: its revision proves nothing */
		if (part)
			seal_observe(json_object_get(part, "header"), -1);
	}
}

static void
keep_alive(waiting *batch)
{
	json_t	   *messages = messages_for(batch);
	json_t	   *answers = NULL;
	etcd_result result = etcd_stream("/v3/lease/keepalive", messages, &answers);

	json_decref(messages);
	if (result == ETCD_OK)
		read_answers(batch, answers);
	else
		for (; batch; batch = batch->next)
			batch->result = result;
	json_decref(answers);
}

static void
look_at_epoch(waiting *batch)
{
	look		seen;
	etcd_result result = look_up(NULL, 0, &seen);

	for (; batch; batch = batch->next)
	{
		batch->epoch = result == ETCD_OK ? seen.epoch.epoch : 0;
		if (batch->result == ETCD_OK)
			batch->result = result;
	}
}

/* Called with the mutex held.  Once done, an entry may vanish with its thread. */
static void
run_batch(void)
{
	waiting    *batch = queue;

	queue = NULL;
	running = true;
	pthread_mutex_unlock(&mutex);
	keep_alive(batch);
	look_at_epoch(batch);
	pthread_mutex_lock(&mutex);
	while (batch)
	{
		waiting    *next = batch->next;

		batch->done = true;
		batch = next;
	}
	running = false;
	pthread_cond_broadcast(&ended);
}

/* On ETCD_OK: what is left of the lease, and the epoch read after it was renewed. */
etcd_result
renew_lease(int64_t lease, int64_t *ttl, int64_t *epoch)
{
	waiting		me = {.lease = lease};

	pthread_mutex_lock(&mutex);
	me.next = queue;
	queue = &me;
	while (!me.done)
	{
		if (running)
			pthread_cond_wait(&ended, &mutex);
		else
			run_batch();
	}
	pthread_mutex_unlock(&mutex);
	*ttl = me.ttl;
	*epoch = me.epoch;
	return me.result;
}
