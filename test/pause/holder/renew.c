/*
 * renew.c
 *	  The renewal thread, the deadline, and the fence.
 *
 * The deadline counts from when the last answered renewal was SENT: the service
 * cannot have started the lease's time before that.  CLOCK_BOOTTIME is read
 * after every sleep; a condition variable cannot wait on it, so a machine that
 * was suspended finds out when it wakes, as a stopped process does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/clock.h"
#include "private.h"

#define LONGEST_WAIT_US 60000000

/* Called with the mutex held; on_fence runs without it. */
static void
fence_locked(lf_holder *h, const char *why)
{
	if (h->state == LF_FENCED)
		return;
	h->state = LF_FENCED;
	pthread_mutex_unlock(&h->mutex);
	h->options.on_fence(h->options.arg, why);
	pthread_mutex_lock(&h->mutex);
}

void
lf_fence(lf_holder *h, const char *why)
{
	pthread_mutex_lock(&h->mutex);
	fence_locked(h, why);
	pthread_mutex_unlock(&h->mutex);
}

void
lf_lease_begins(lf_holder *h, const char *session, int64_t ttl_us, int64_t sent)
{
	pthread_mutex_lock(&h->mutex);
	snprintf(h->session, sizeof h->session, "%s", session);
	h->ttl_us = ttl_us;
	h->deadline = sent + ttl_us * 2 / 3;
	h->next_renewal = sent + ttl_us / 3;
	h->lease++;
	if (h->state == LF_STOPPING)
		h->state = LF_HOLDING;
	if (h->options.on_lease)
		h->options.on_lease(h->options.arg, "session", h->session, sent, ttl_us);
	pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->mutex);
}

/* The deadline stays: the lease may yet turn out to be held. */
void
lf_lease_is_released(lf_holder *h)
{
	pthread_mutex_lock(&h->mutex);
	h->next_renewal = NEVER;
	h->lease++;
	pthread_mutex_unlock(&h->mutex);
}

void
lf_lease_ends(lf_holder *h)
{
	pthread_mutex_lock(&h->mutex);
	h->deadline = NEVER;
	h->next_renewal = NEVER;
	pthread_mutex_unlock(&h->mutex);
}

lf_state
lf_holder_check(lf_holder *h)
{
	lf_state	state;

	pthread_mutex_lock(&h->mutex);
	if (clock_us() >= h->deadline)
		fence_locked(h, "no renewal was answered in time");
	state = h->state;
	pthread_mutex_unlock(&h->mutex);
	return state;
}

static void
wait_until(lf_holder *h, int64_t when)
{
	int64_t		us = when - clock_us();
	struct timespec ts;

	if (us <= 0)
		return;
	if (us > LONGEST_WAIT_US)
		us = LONGEST_WAIT_US;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += us / 1000000;
	ts.tv_nsec += (us % 1000000) * 1000;
	if (ts.tv_nsec >= 1000000000)
	{
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&h->wake, &h->mutex, &ts);
}

/* Asks once, without the mutex.  An answer counts only if it came in time. */
static lf_result
ask_renewal(lf_holder *h, int64_t deadline, int64_t *sent)
{
	int64_t		left = (deadline - clock_us()) / 1000 + 1;
	int64_t		third = h->ttl_us / 3000;

	return h->service->renew(h, left < third ? left : third, sent);
}

/* Called with the mutex held. */
static void
note_renewal(lf_holder *h, lf_result result, int64_t sent, int *failures)
{
	int64_t		now = clock_us();

	if (result == LF_OK && now < h->deadline)
	{
		*failures = 0;
		h->state = LF_HOLDING;
		h->deadline = sent + h->ttl_us * 2 / 3;
		h->next_renewal = sent + h->ttl_us / 3;
		return;
	}
	if (result == LF_BUSY)
		h->renewals_shed++;
	h->renewals_failed++;
	h->state = LF_STOPPING;
	/* quickly again, in a full-jitter back-off that the deadline cuts off */
	h->next_renewal = now + rand_r(&h->seed) % (50000 << (*failures < 5 ? *failures : 5));
	(*failures)++;
}

static void
renew_once(lf_holder *h, int *failures)
{
	int64_t		deadline = h->deadline;
	int			lease = h->lease;
	int64_t		sent;
	lf_result	result;

	pthread_mutex_unlock(&h->mutex);
	result = ask_renewal(h, deadline, &sent);
	pthread_mutex_lock(&h->mutex);
	if (h->state == LF_FENCED || h->lease != lease)
		return;					/* the answer is about a lease that has ended */
	if (result == LF_OK && h->options.on_lease)
		h->options.on_lease(h->options.arg, "renew", h->session, sent, h->ttl_us);
	if (result == LF_GONE)
		fence_locked(h, "the service says the session is gone");
	else
		note_renewal(h, result, sent, failures);
}

static void *
run_renewals(void *arg)
{
	lf_holder  *h = arg;
	int			failures = 0;

	pthread_mutex_lock(&h->mutex);
	while (!h->closing && h->state != LF_FENCED)
	{
		int64_t		next = h->next_renewal < h->deadline ? h->next_renewal : h->deadline;

		if (clock_us() >= h->deadline)
			fence_locked(h, "no renewal was answered in time");
		else if (clock_us() < next)
			wait_until(h, next);
		else
			renew_once(h, &failures);
	}
	pthread_mutex_unlock(&h->mutex);
	return NULL;
}

int
lf_renewal_start(lf_holder *h)
{
	pthread_attr_t attr;
	int			failed;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	failed = pthread_create(&h->thread, &attr, run_renewals, h);
	pthread_attr_destroy(&attr);
	if (failed)
		snprintf(h->message, sizeof h->message, "cannot start the renewal thread: %s",
				 strerror(failed));
	return failed;
}

void
lf_renewal_stop(lf_holder *h)
{
	pthread_mutex_lock(&h->mutex);
	h->closing = true;
	pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->mutex);
	pthread_join(h->thread, NULL);
}
