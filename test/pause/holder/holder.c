/*
 * holder.c
 *	  Session, acquire and release: the calls a program makes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../common/clock.h"
#include "../common/token.h"
#include "private.h"

#define ASK_TIMEOUT_MS 5000
#define OPEN_WAIT_MS 10000
#define BACKOFF_FIRST_MS 50

static const struct
{
	const char *code;
	lf_result	result;
}			codes[] = {
	{"held", LF_HELD},
	{"busy", LF_BUSY},
	{"sealed", LF_SEALED},
	{"ambiguous", LF_UNKNOWN},
	{"session_gone", LF_GONE},
	{"not_held", LF_GONE},
};

static lf_result
result_of(int status, const char *code)
{
	if (status == 200)
		return LF_OK;
	for (size_t i = 0; code && i < sizeof codes / sizeof *codes; i++)
		if (strcmp(code, codes[i].code) == 0)
			return codes[i].result;
	return status == 503 && code == NULL ? LF_BUSY : LF_FAILED;
}

lf_result
lf_ask_with(lf_holder *h, fetch *f, const char *path, json_t *body, long timeout_ms,
			json_t **answer, int64_t *sent)
{
	char		url[512];
	fetch_answer got;
	fetch_result how;
	lf_result	result;
	const char *code = NULL;
	const char *text = NULL;

	snprintf(url, sizeof url, "%s%s", h->options.url, path);
	how = fetch_json(f, url, body, timeout_ms, &got);
	if (sent)
		*sent = got.sent_us;
	json_unpack(json_object_get(got.json, "error"), "{s:s, s:s}", "code", &code, "message", &text);
	result = how == FETCH_ANSWERED ? result_of(got.status, code) :
		how == FETCH_UNSENT ? LF_FAILED : LF_UNKNOWN;
	pthread_mutex_lock(&h->mutex);
	h->retry_after_ms = got.retry_after_s * 1000;
	if (result != LF_OK)
		snprintf(h->message, sizeof h->message, "%s: %s", path,
				 how != FETCH_ANSWERED ? got.error : text ? text : "an answer without a reason");
	pthread_mutex_unlock(&h->mutex);
	if (answer && result == LF_OK)
		*answer = got.json;
	else
		json_decref(got.json);
	return result;
}

static lf_result
ask(lf_holder *h, const char *path, json_t *body, long timeout_ms, json_t **answer)
{
	lf_result	result;

	pthread_mutex_lock(&h->asking_mutex);
	result = lf_ask_with(h, h->asking, path, body, timeout_ms, answer, NULL);
	pthread_mutex_unlock(&h->asking_mutex);
	return result;
}

static bool
read_session(lf_holder *h, json_t *answer, int64_t sent)
{
	const char *session = NULL;
	int			ttl = 0;

	if (json_unpack(answer, "{s:s, s:i}", "session", &session, "ttl", &ttl) != 0)
		return false;
	snprintf(h->session, sizeof h->session, "%s", session);
	h->ttl_us = (int64_t) ttl * 1000000;
	h->deadline = sent + h->ttl_us * 2 / 3;
	h->next_renewal = sent + h->ttl_us / 3;
	if (h->options.on_lease)
		h->options.on_lease(h->options.arg, "session", h->session, sent, h->ttl_us);
	return true;
}

/*
 * Tries again on the same connection: where a crowd starts at once, the
 * handshakes are most of the work, and giving one up makes it more.
 */
static bool
open_session(lf_holder *h)
{
	json_t	   *body = json_pack("{s:i}", "ttl", h->options.ttl_s);
	int			wait = h->options.open_wait_ms ? h->options.open_wait_ms : OPEN_WAIT_MS;
	int64_t		until = clock_us() + wait * INT64_C(1000);
	bool		opened = false;

	for (int attempt = 0; !opened && clock_us() < until; attempt++)
	{
		json_t	   *answer = NULL;
		int64_t		sent;
		lf_result	result;

		h->next_renewal = until;	/* there is none to be in time for */
		result = lf_ask_with(h, h->asking, "/v1/session", body, (until - clock_us()) / 1000 + 1,
							 &answer, &sent);
		opened = result == LF_OK && read_session(h, answer, sent);
		json_decref(answer);
		if (result == LF_SEALED || (result == LF_FAILED && attempt >= 3))
			break;
		if (!opened)
			sleep_us(lf_holder_retry_ms(h, attempt) * INT64_C(1000));
	}
	json_decref(body);
	return opened;
}

static void
free_holder(lf_holder *h)
{
	fetch_close(h->asking);
	fetch_close(h->renewing);
	pthread_cond_destroy(&h->wake);
	pthread_mutex_destroy(&h->mutex);
	pthread_mutex_destroy(&h->asking_mutex);
	free(h);
}

static lf_holder *
new_holder(const lf_options *options)
{
	lf_holder  *h = calloc(1, sizeof *h);
	fetch_identity identity = {options->ca, options->cert, options->key, options->unix_socket};
	pthread_condattr_t attr;

	h->options = *options;
	h->asking = fetch_open(&identity);
	h->renewing = fetch_open(&identity);
	pthread_mutex_init(&h->asking_mutex, NULL);
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
	json_t	   *body = json_pack("{s:s, s:s, s:s, s:i}", "session", h->session,
								 "resource", resource, "request", request, "wait_ms", wait_ms);
	json_t	   *answer = NULL;
	lf_result	result = ask(h, "/v1/acquire", body, ASK_TIMEOUT_MS + wait_ms, &answer);

	json_decref(body);
	if (result == LF_OK &&
		!token_parse(json_string_value(json_object_get(answer, "token")), token))
		result = LF_FAILED;
	json_decref(answer);
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
	char		request[64];

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
	char		text[32];
	json_t	   *body;
	lf_result	result;

	snprintf(text, sizeof text, "%" PRId64, token);
	body = json_pack("{s:s, s:s, s:s}", "session", h->session, "resource", resource,
					 "token", text);
	result = ask(h, "/v1/release", body, ASK_TIMEOUT_MS, NULL);
	json_decref(body);
	return result;
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
