/*
 * seal.c
 *	  Has the cluster's history gone back?
 *
 * Every linearizable answer is held against what was seen before it was asked
 * for: the cluster's id, a revision that only grows, an epoch that only grows.
 * An answer that contradicts them comes from a cluster restored from an old
 * snapshot, in which tokens would repeat and locks long released are held again.
 * The arbiter is then sealed until an operator advances the epoch.
 *
 * The id alone would not do: a cluster restored under the same initial cluster
 * token has the same id.  What was seen is kept in a file, so that a restart
 * does not forget it, and the floor in PostgreSQL is asked at the start, in case
 * the file is gone too.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arbiter.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct
{
	char		cluster[32];	/* as text: it exceeds 2^63 */
	int64_t		revision;
	int64_t		epoch;
	bool		sealed;
	char		reason[160];
	bool		dirty;
}			seen;

static void
seal_locked(const char *reason)
{
	if (seen.sealed || conf.never_seals)
		return;
	seen.sealed = true;
	snprintf(seen.reason, sizeof seen.reason, "%s", reason);
	seen.dirty = true;
	fprintf(stderr, "sealed: %s\n", reason);
}

void
seal_now(const char *reason)
{
	pthread_mutex_lock(&mutex);
	seal_locked(reason);
	pthread_mutex_unlock(&mutex);
}

/* Taken before a request is sent: answers may overtake each other. */
int64_t
seal_revision_floor(void)
{
	int64_t		floor;

	pthread_mutex_lock(&mutex);
	floor = seen.revision;
	pthread_mutex_unlock(&mutex);
	return floor;
}

static const char *
cluster_of(json_t *header)
{
	const char *id = json_string_value(json_object_get(header, "cluster_id"));

	return id ? id : "";
}

/* False if this answer seals the arbiter.  floor < 0: its revision proves nothing. */
bool
seal_observe(json_t *header, int64_t floor)
{
	int64_t		revision = json_int64(header, "revision");
	bool		good;

	pthread_mutex_lock(&mutex);
	good = !seen.sealed;
	if (seen.cluster[0] && strcmp(seen.cluster, cluster_of(header)) != 0)
		seal_locked("another cluster answers than before");
	else if (floor >= 0 && revision < floor)
		seal_locked("the cluster answers with an older revision than before");
	else if (!seen.sealed && floor >= 0 && revision > seen.revision)
	{
		seen.revision = revision;
		seen.dirty = true;
	}
	good = good && !seen.sealed;
	pthread_mutex_unlock(&mutex);
	return good;
}

/* What /sys/epoch says must fit the cluster that says it. */
bool
seal_observe_epoch(const kv *item, json_t *header)
{
	int64_t		epoch = json_int64(item->value, "epoch");
	const char *cluster = json_string_value(json_object_get(item->value, "cluster"));
	bool		good;

	pthread_mutex_lock(&mutex);
	if (!item->found)
		seal_locked("the cluster has no epoch yet");
	else if (cluster == NULL || strcmp(cluster, cluster_of(header)) != 0)
		seal_locked("the epoch belongs to another cluster than the one that answers");
	else if (epoch < seen.epoch)
		seal_locked("the epoch is lower than one seen before");
	else if (!seen.sealed && (epoch > seen.epoch || !seen.cluster[0]))
	{
		seen.epoch = epoch;
		snprintf(seen.cluster, sizeof seen.cluster, "%s", cluster);
		seen.dirty = true;
	}
	good = !seen.sealed;
	pthread_mutex_unlock(&mutex);
	return good;
}

bool
seal_is_sealed(char *reason, size_t size)
{
	bool		sealed;

	pthread_mutex_lock(&mutex);
	sealed = seen.sealed;
	if (reason)
		snprintf(reason, size, "%s", seen.reason);
	pthread_mutex_unlock(&mutex);
	return sealed;
}

/* Only epoch_advance() opens, after its txn went through. */
void
seal_open(int64_t epoch, const char *cluster, int64_t revision)
{
	pthread_mutex_lock(&mutex);
	seen.epoch = epoch;
	seen.revision = revision;
	snprintf(seen.cluster, sizeof seen.cluster, "%s", cluster);
	seen.sealed = false;
	seen.reason[0] = '\0';
	seen.dirty = true;
	pthread_mutex_unlock(&mutex);
	seal_save();
}

int64_t
seal_highest_epoch(void)
{
	int64_t		epoch;

	pthread_mutex_lock(&mutex);
	epoch = seen.epoch;
	pthread_mutex_unlock(&mutex);
	return epoch;
}

/* Written whole and renamed into place, so a crash leaves the old or the new. */
static void
write_state(json_t *state)
{
	char		temp[512];
	FILE	   *f;

	snprintf(temp, sizeof temp, "%s.new", conf.state_path);
	f = fopen(temp, "w");
	if (f == NULL)
		return;
	json_dumpf(state, f, JSON_COMPACT);
	fflush(f);
	fsync(fileno(f));
	fclose(f);
	rename(temp, conf.state_path);
}

void
seal_save(void)
{
	static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
	json_t	   *state = NULL;

	pthread_mutex_lock(&writing);
	pthread_mutex_lock(&mutex);
	if (seen.dirty)
		state = json_pack("{s:s, s:I, s:I, s:b, s:s}", "cluster", seen.cluster,
						  "revision", (json_int_t) seen.revision,
						  "epoch", (json_int_t) seen.epoch,
						  "sealed", seen.sealed, "reason", seen.reason);
	seen.dirty = false;
	pthread_mutex_unlock(&mutex);
	if (state)
		write_state(state);
	json_decref(state);
	pthread_mutex_unlock(&writing);
}

static void
load_state(void)
{
	json_t	   *state = json_load_file(conf.state_path, 0, NULL);
	const char *cluster = json_string_value(json_object_get(state, "cluster"));
	const char *reason = json_string_value(json_object_get(state, "reason"));

	if (cluster)
		snprintf(seen.cluster, sizeof seen.cluster, "%s", cluster);
	seen.revision = json_int64(state, "revision");
	seen.epoch = json_int64(state, "epoch");
	if (json_is_true(json_object_get(state, "sealed")))
		seal_locked(reason ? reason : "sealed before the restart");
	json_decref(state);
}

/* A token that PostgreSQL accepted was issued, whatever this arbiter remembers. */
static void
check_floor(int64_t revision)
{
	char		problem[160];
	int64_t		floor = conf.floor_dsn ? epoch_floor_token(problem, sizeof problem) : 0;

	if (floor < 0)
		seal_now("the floor in PostgreSQL cannot be read");
	else if (token_make(seal_highest_epoch(), revision) < floor)
		seal_now("PostgreSQL has accepted a higher token than this cluster has issued");
}

void
seal_start(void)
{
	look		seen_now;
	int			tries = 0;

	load_state();
	while (look_up(NULL, 0, &seen_now) != ETCD_OK && ++tries < 40)
		sleep_us(250000);
	if (tries == 40)
		seal_now("etcd did not answer when the arbiter started");
	else
		look_free(&seen_now);
	check_floor(seal_revision_floor());
}
