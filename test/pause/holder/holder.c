/*
 * holder.c
 *	  Session, acquire and release: the calls a program makes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../common/clock.h"
#include "private.h"

#define OPEN_WAIT_MS 10000
#define BACKOFF_FIRST_MS 50

/*
 * Tries again on the same connection: where a crowd starts at once, the
 * handshakes are most of the work, and giving one up makes it more.
 */
static bool
open_session(lf_holder *h)
{
	int			wait = h->options.open_wait_ms ? h->options.open_wait_ms : OPEN_WAIT_MS;
	int64_t		until = clock_us() + wait * INT64_C(1000);

	for (int attempt = 0; clock_us() < until; attempt++)
	{
		lf_result	result;

		h->next_renewal = until;	/* there is none to be in time for */
		result = h->service->open(h, (until - clock_us()) / 1000 + 1);
		if (result == LF_OK)
			return true;
		if (result == LF_SEALED || (result == LF_FAILED && attempt >= 3))
			break;
		sleep_us(lf_holder_retry_ms(h, attempt) * INT64_C(1000));
	}
	return false;
}

static void
free_holder(lf_holder *h)
{
	h->service->close(h);
	pthread_cond_destroy(&h->wake);
	pthread_mutex_destroy(&h->mutex);
	free(h);
}

static lf_holder *
new_holder(const lf_options *options)
{
	lf_holder  *h = calloc(1, sizeof *h);
	pthread_condattr_t attr;

	h->options = *options;
	h->service = options->lease_dsn ? &lf_leases : &lf_http;
	h->link = h->service->connect(options);
	h->deadline = NEVER;
	pthread_mutex_init(&h->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (getrandom(&h->seed, sizeof h->seed, 0) < 0)
		h->seed = (unsigned) clock_us();
	return h;
}

lf_holder *
lf_holder_open(const lf_options *options, char *message, size_t size)
{
	lf_holder  *h;

	if (options->on_fence == NULL)
	{
		snprintf(message, size, "on_fence is missing: a holder must know how to stop");
		return NULL;
	}
	h = new_holder(options);
	if (open_session(h) && lf_renewal_start(h) == 0)
		return h;
	snprintf(message, size, "%s", h->message);
	free_holder(h);
	return NULL;
}

void
lf_holder_close(lf_holder *h)
{
	if (h == NULL)
		return;
	lf_renewal_stop(h);
	free_holder(h);
}

lf_result
lf_holder_try(lf_holder *h, const char *resource, const char *request, int wait_ms, int64_t *token)
{
	lf_result	result = h->service->acquire(h, resource, request, wait_ms, token);

	if (result == LF_GONE)
		lf_fence(h, "the service says the session is gone");
	return result;
}

int
lf_holder_retry_ms(lf_holder *h, int attempt)
{
	int64_t		cap;
	int64_t		ms = (int64_t) BACKOFF_FIRST_MS << (attempt < 10 ? attempt : 10);
	int64_t		least;

	pthread_mutex_lock(&h->mutex);
	cap = (h->next_renewal - clock_us()) / 1000;
	least = h->retry_after_ms;
	ms = ms < cap ? ms : cap;
	ms = ms > 0 ? rand_r(&h->seed) % (ms + 1) : 0;
	/* the service's own wish is a minimum; jitter keeps a crowd apart after it */
	if (least > 0)
		ms = least + rand_r(&h->seed) % (least + 1);
	pthread_mutex_unlock(&h->mutex);
	return (int) (ms > 5 ? ms : 5);
}

lf_result
lf_holder_acquire(lf_holder *h, const char *resource, int wait_ms, int64_t *token)
{
	int64_t		until = clock_us() + (int64_t) wait_ms * 1000;
	char		request[96];

	snprintf(request, sizeof request, "%s-%lx", h->session, (long) clock_us());
	for (int attempt = 0;; attempt++)
	{
		int64_t		left = (until - clock_us()) / 1000;
		lf_result	result = lf_holder_try(h, resource, request,
										   left > 1000 ? 1000 : left > 0 ? (int) left : 0, token);

		if (result == LF_OK || result == LF_GONE || result == LF_SEALED || clock_us() >= until)
			return result;
		if (lf_holder_check(h) == LF_FENCED)
			return LF_GONE;
		sleep_us((int64_t) lf_holder_retry_ms(h, attempt) * 1000);
	}
}

lf_result
lf_holder_release(lf_holder *h, const char *resource, int64_t token)
{
	return h->service->release(h, resource, token);
}

const char *
lf_holder_session(const lf_holder *h)
{
	return h->session;
}

const char *
lf_holder_message(const lf_holder *h)
{
	return h->message;
}

int
lf_holder_renewals_shed(const lf_holder *h)
{
	return h->renewals_shed;
}

int
lf_holder_renewals_failed(const lf_holder *h)
{
	return h->renewals_failed;
}
