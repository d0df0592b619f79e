/*
 * http.c
 *	  The lock service behind HTTPS: one session, on which every hold hangs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/fetch.h"
#include "../common/token.h"
#include "private.h"

#define ASK_TIMEOUT_MS 5000

typedef struct http_link
{
	fetch	   *asking;			/* its connection is the renewal's too, while it is idle: */
	pthread_mutex_t asking_mutex;	/* a handshake costs more than a renewal */
	fetch	   *renewing;		/* for when it is not */
} http_link;

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

/* The service's answer to path, with what the status means. */
static lf_result
ask_with(lf_holder *h, fetch *f, const char *path, json_t *body, long timeout_ms,
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
	http_link  *l = h->link;
	lf_result	result;

	pthread_mutex_lock(&l->asking_mutex);
	result = ask_with(h, l->asking, path, body, timeout_ms, answer, NULL);
	pthread_mutex_unlock(&l->asking_mutex);
	return result;
}

static void *
http_connect(const lf_options *options)
{
	http_link  *l = calloc(1, sizeof *l);
	fetch_identity identity = {options->ca, options->cert, options->key, options->unix_socket};

	l->asking = fetch_open(&identity);
	l->renewing = fetch_open(&identity);
	pthread_mutex_init(&l->asking_mutex, NULL);
	return l;
}

static void
http_close(lf_holder *h)
{
	http_link  *l = h->link;

	fetch_close(l->asking);
	fetch_close(l->renewing);
	pthread_mutex_destroy(&l->asking_mutex);
	free(l);
}

static lf_result
http_open(lf_holder *h, long timeout_ms)
{
	json_t	   *body = json_pack("{s:i}", "ttl", h->options.ttl_s);
	json_t	   *answer = NULL;
	const char *session = NULL;
	int			ttl = 0;
	int64_t		sent;
	lf_result	result = ask_with(h, ((http_link *) h->link)->asking, "/v1/session", body, timeout_ms,
								  &answer, &sent);

	if (result == LF_OK && json_unpack(answer, "{s:s, s:i}", "session", &session, "ttl", &ttl) == 0)
		lf_lease_begins(h, session, ttl * INT64_C(1000000), sent);
	else if (result == LF_OK)
		result = LF_FAILED;
	json_decref(answer);
	json_decref(body);
	return result;
}

static lf_result
http_acquire(lf_holder *h, const char *resource, const char *request, int wait_ms, int64_t *token)
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
	return result;
}

/* An acquire that waits must not make a renewal wait. */
static lf_result
http_renew(lf_holder *h, long timeout_ms, int64_t *sent)
{
	http_link  *l = h->link;
	json_t	   *body = json_pack("{s:s}", "session", h->session);
	bool		idle = pthread_mutex_trylock(&l->asking_mutex) == 0;
	lf_result	result = ask_with(h, idle ? l->asking : l->renewing, "/v1/renew", body, timeout_ms,
								  NULL, sent);

	if (idle)
		pthread_mutex_unlock(&l->asking_mutex);
	json_decref(body);
	return result;
}

static lf_result
http_release(lf_holder *h, const char *resource, int64_t token)
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

const lf_service lf_http = {
	http_connect, http_close, http_open, http_acquire, http_renew, http_release
};
