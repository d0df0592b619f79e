/*
 * fetch.c
 *	  One JSON request over HTTP, and what is known when it fails.
 *
 * A handle belongs to one thread at a time and keeps its connection.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fetch.h"

#define MAX_ANSWER (1 << 20)

struct fetch
{
	CURL	   *curl;
	struct curl_slist *headers;
	char	   *text;
	size_t		len;
	char		error[CURL_ERROR_SIZE];
};

static size_t
take_text(char *data, size_t size, size_t count, void *arg)
{
	fetch	   *f = arg;
	size_t		more = size * count;

	if (f->len + more > MAX_ANSWER)
		return 0;
	f->text = realloc(f->text, f->len + more + 1);
	memcpy(f->text + f->len, data, more);
	f->len += more;
	f->text[f->len] = '\0';
	return more;
}

static void
set_identity(CURL *curl, const fetch_identity *identity)
{
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
	if (identity->ca)
	{
		curl_easy_setopt(curl, CURLOPT_CAINFO, identity->ca);
		curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
	}
	if (identity->cert)
		curl_easy_setopt(curl, CURLOPT_SSLCERT, identity->cert);
	if (identity->key)
		curl_easy_setopt(curl, CURLOPT_SSLKEY, identity->key);
	if (identity->unix_socket)
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, identity->unix_socket);
}

fetch *
fetch_open(const fetch_identity *identity)
{
	fetch	   *f = calloc(1, sizeof *f);

	f->curl = curl_easy_init();
	f->headers = curl_slist_append(NULL, "Content-Type: application/json");
	f->headers = curl_slist_append(f->headers, "Expect:");
	curl_easy_setopt(f->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(f->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(f->curl, CURLOPT_ERRORBUFFER, f->error);
	curl_easy_setopt(f->curl, CURLOPT_HTTPHEADER, f->headers);
	curl_easy_setopt(f->curl, CURLOPT_WRITEFUNCTION, take_text);
	curl_easy_setopt(f->curl, CURLOPT_WRITEDATA, f);
	if (identity)
		set_identity(f->curl, identity);
	return f;
}

void
fetch_close(fetch *f)
{
	if (f == NULL)
		return;
	curl_easy_cleanup(f->curl);
	curl_slist_free_all(f->headers);
	free(f->text);
	free(f);
}

/* Before the transfer began, nothing of the request was on the wire. */
static fetch_result
judge_failure(CURL *curl, CURLcode code)
{
	curl_off_t	began = 0;

	curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &began);
	if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST || began == 0)
		return FETCH_UNSENT;
	return FETCH_UNKNOWN;
}

static void
read_answer(fetch *f, fetch_answer *answer)
{
	long		status = 0;
	curl_off_t	retry = 0;

	curl_easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(f->curl, CURLINFO_RETRY_AFTER, &retry);
	answer->status = (int) status;
	answer->retry_after_s = (int) retry;
}

/* text NULL: GET.  What came back is in f->text. */
static fetch_result
perform(fetch *f, const char *url, const char *text, long timeout_ms, fetch_answer *answer)
{
	int64_t		start = clock_us();
	curl_off_t	before = 0;
	CURLcode	code;

	memset(answer, 0, sizeof *answer);
	f->len = 0;
	f->error[0] = '\0';
	curl_easy_setopt(f->curl, CURLOPT_URL, url);
	curl_easy_setopt(f->curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(f->curl, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
	if (text)
		curl_easy_setopt(f->curl, CURLOPT_POSTFIELDS, text);
	else
		curl_easy_setopt(f->curl, CURLOPT_HTTPGET, 1L);
	code = curl_easy_perform(f->curl);
	curl_easy_getinfo(f->curl, CURLINFO_PRETRANSFER_TIME_T, &before);
	answer->sent_us = start + before;
	if (code != CURLE_OK)
	{
		snprintf(answer->error, sizeof answer->error, "%.150s",
				 f->error[0] ? f->error : curl_easy_strerror(code));
		return judge_failure(f->curl, code);
	}
	read_answer(f, answer);
	return FETCH_ANSWERED;
}

fetch_result
fetch_json(fetch *f, const char *url, json_t *body, long timeout_ms, fetch_answer *answer)
{
	char	   *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	fetch_result result = perform(f, url, text, timeout_ms, answer);

	free(text);
	if (result == FETCH_ANSWERED && f->len > 0)
		answer->json = json_loadb(f->text, f->len, 0, NULL);
	return result;
}

/* One JSON value after the other, as they come. */
static json_t *
load_stream(const char *text, size_t len)
{
	json_t	   *values = json_array();
	json_error_t at;
	json_t	   *value;

	while ((value = json_loadb(text, len, JSON_DISABLE_EOF_CHECK, &at)) != NULL)
	{
		json_array_append_new(values, value);
		text += at.position;
		len -= at.position;
	}
	return values;
}

fetch_result
fetch_stream(fetch *f, const char *url, json_t *messages, long timeout_ms, fetch_answer *answer)
{
	size_t		capacity = json_array_size(messages) * 64 + 1;
	char	   *text = malloc(capacity);
	size_t		len = 0;
	size_t		i;
	json_t	   *message;
	fetch_result result;

	json_array_foreach(messages, i, message)
		len += json_dumpb(message, text + len, capacity - len, JSON_COMPACT);
	text[len] = '\0';
	result = perform(f, url, text, timeout_ms, answer);
	free(text);
	if (result == FETCH_ANSWERED)
		answer->json = load_stream(f->text, f->len);
	return result;
}
