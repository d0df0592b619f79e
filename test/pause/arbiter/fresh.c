/*
 * fresh.c
 *	  One linearizable look at the epoch for all renewals that wait for one.
 *
 * A renewal may be called good only after a linearizable answer that was asked
 * for after its keepalive: else a restored cluster could renew what it revived.
 * Any number of renewals can share such a look, provided it begins after the
 * last of them came.  So whoever comes while one is under way waits for the next.
 */
#include <pthread.h>

#include "arbiter.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int64_t begun;			/* looks so far */
static bool running;
static etcd_result last_result;
static int64_t last_epoch;
static int64_t last_number;		/* the look they are of */

/* Called with the mutex held. */
static void
run_look(void)
{
	int64_t		number = ++begun;
	look		seen;
	etcd_result result;

	running = true;
	pthread_mutex_unlock(&mutex);
	result = look_up(NULL, 0, &seen);
	pthread_mutex_lock(&mutex);
	last_result = result;
	last_epoch = result == ETCD_OK ? seen.epoch.epoch : 0;
	last_number = number;
	running = false;
	pthread_cond_broadcast(&ended);
}

etcd_result
fresh_epoch(int64_t *epoch)
{
	int64_t		wanted;
	etcd_result result;

	pthread_mutex_lock(&mutex);
	wanted = begun + 1;
	while (last_number < wanted)
	{
		if (running)
			pthread_cond_wait(&ended, &mutex);
		else
			run_look();
	}
	result = last_result;
	*epoch = last_epoch;
	pthread_mutex_unlock(&mutex);
	return result;
}
