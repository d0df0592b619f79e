/*
 * connection.h
 *		The connection to the lock service, as connection.c makes it and request.c uses it.
 */
#ifndef LOCKFENCE_VALIDATE_CONNECTION_H
#define LOCKFENCE_VALIDATE_CONNECTION_H

#include <signal.h>

#include <curl/curl.h>

#include "answer.h"

/* Every difference between versions of libcurl. */
#if LIBCURL_VERSION_NUM < 0x074e00	/* 7.78.0 gave it this name */
#define CURLE_SETOPT_OPTION_SYNTAX CURLE_TELNET_OPTION_SYNTAX
#endif
#if LIBCURL_VERSION_NUM >= 0x075500	/* 7.85.0 names protocols */
#define RESTRICT_PROTOCOLS(easy, name, bit) curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, name)
#else
#define RESTRICT_PROTOCOLS(easy, name, bit) curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long) (bit))
#endif
#if LIBCURL_VERSION_NUM >= 0x075700	/* 7.87.0: leaves its resolver to itself */
#define QUIT_QUICKLY(easy) curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L)
#else
#define QUIT_QUICKLY(easy) CURLE_OK
#endif

/* An answer with more bytes of headers is invalid. */
#define MAX_HEADERS 65536

typedef struct Connection
{
	bool		reserved;		/* a file descriptor of the server */
	CURLM	   *multi;
	CURL	   *easy;
	struct curl_slist *headers;
	struct curl_slist *addresses;

	/* what has arrived */
	size_t		headers_len;
	size_t		body_len;
	char		body[MAX_ANSWER];
	char		error[CURL_ERROR_SIZE];
} Connection;

extern void lockfence_open_connection(void);
extern void lockfence_close_connection(void);
extern Connection *lockfence_connection(void);
extern void lockfence_block_signals(sigset_t *saved);
extern void lockfence_restore_signals(const sigset_t *saved);

#endif							/* LOCKFENCE_VALIDATE_CONNECTION_H */
