/*
 * lockfence.h
 *		What every file needs: the token, limits, and error codes.
 */
#ifndef LOCKFENCE_H
#define LOCKFENCE_H

#include "utils/elog.h"

/* The schema that holds every object of the extension; fixed. */
#define LOCKFENCE_SCHEMA "lockfence"

/* Longest resource name, and template, in bytes: a mark must fit an index entry. */
#define LOCKFENCE_MAX_RESOURCE_LEN 1024

/* Longest arguments of a guard that are read: the template, and some names. */
#define LOCKFENCE_MAX_ARGUMENTS_LEN (8 * LOCKFENCE_MAX_RESOURCE_LEN)

/*
 * A fencing token: epoch (15 bits) * 2^48 + revision (48 bits), always > 0.
 * Zero stands for "no token" wherever a token may be absent.
 */
typedef int64 FenceToken;

#define LOCKFENCE_REVISION_BITS 48
#define LOCKFENCE_MAX_REVISION ((INT64CONST(1) << LOCKFENCE_REVISION_BITS) - 1)
#define LOCKFENCE_MAX_EPOCH 32767

/* ERRCODE_STALE_FENCE_TOKEN and its kin: class LF, which no client library retries. */
enum
{
#define REFUSAL(name, tens, ones, condition, counter, column, when, remedy) \
	ERRCODE_##name = MAKE_SQLSTATE('L', 'F', '0', tens, ones),
#include "refusals.def"
};

#endif							/* LOCKFENCE_H */
