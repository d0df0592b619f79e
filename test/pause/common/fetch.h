/*
 * fetch.h
 *	  One JSON request over HTTP, and what is known when it fails.
 */
#ifndef PAUSE_FETCH_H
#define PAUSE_FETCH_H

#include <jansson.h>
#include <stdint.h>

typedef enum fetch_result
{
	FETCH_ANSWERED,				/* an HTTP answer came, of whatever status */
	FETCH_UNSENT,				/* the request certainly did not leave */
	FETCH_UNKNOWN				/* it may have been acted on */
} fetch_result;

/* Any may be NULL.  The files are PEM. */
typedef struct fetch_identity
{
	const char *ca;
	const char *cert;
	const char *key;
	const char *unix_socket;
} fetch_identity;

typedef struct fetch fetch;

typedef struct fetch_answer
{
	int			status;
	int64_t		sent_us;		/* not before this was the request sent: after any handshake */
	int			retry_after_s;	/* 0: the answer did not say */
	json_t	   *json;			/* NULL: no JSON object came; the caller frees it */
	char		error[160];		/* filled unless FETCH_ANSWERED */
} fetch_answer;

extern fetch *fetch_open(const fetch_identity *identity);
extern void fetch_close(fetch *f);

/* body NULL: GET, else POST; the body is not freed. */
extern fetch_result fetch_json(fetch *f, const char *url, json_t *body,
							   long timeout_ms, fetch_answer *answer);

/* The same with a stream of messages each way: both are arrays. */
extern fetch_result fetch_stream(fetch *f, const char *url, json_t *messages,
								 long timeout_ms, fetch_answer *answer);

#endif
