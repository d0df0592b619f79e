/*
 * token.h
 *	  A fencing token: epoch * 2^48 + revision, as the lock service issues it.
 *
 * In JSON it is a string, because epoch 32 is 2^53 and a double loses digits
 * from there on.
 */
#ifndef PAUSE_TOKEN_H
#define PAUSE_TOKEN_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define TOKEN_REVISION_BITS 48
#define TOKEN_MAX_EPOCH 32767
#define TOKEN_MAX_REVISION ((INT64_C(1) << TOKEN_REVISION_BITS) - 1)

static inline int64_t
token_make(int64_t epoch, int64_t revision)
{
	return (epoch << TOKEN_REVISION_BITS) + revision;
}

static inline int64_t
token_epoch(int64_t token)
{
	return token >> TOKEN_REVISION_BITS;
}

static inline int64_t
token_revision(int64_t token)
{
	return token & TOKEN_MAX_REVISION;
}

/* Reads a whole decimal int8; the text may hold nothing else. */
static inline bool
token_parse(const char *text, int64_t *token)
{
	char	   *end;

	if (text == NULL || *text == '\0')
		return false;
	errno = 0;
	*token = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0';
}

#endif
