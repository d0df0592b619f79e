/*
 * lockfence.h
 *		What every file needs: the token, limits, and error codes.
 */
#ifndef LOCKFENCE_H
#define LOCKFENCE_H

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

#define LOCKFENCE_ERRCODE(n) MAKE_SQLSTATE('L', 'F', '0', '0', n)
#define ERRCODE_STALE_FENCE_TOKEN		LOCKFENCE_ERRCODE('1')
#define ERRCODE_MISSING_FENCE_TOKEN		LOCKFENCE_ERRCODE('2')
#define ERRCODE_INVALID_FENCE_TOKEN		LOCKFENCE_ERRCODE('3')
#define ERRCODE_UNKNOWN_FENCE_EPOCH		LOCKFENCE_ERRCODE('4')
#define ERRCODE_FENCE_SEALED			LOCKFENCE_ERRCODE('5')
#define ERRCODE_CONFLICTING_FENCE_TOKENS LOCKFENCE_ERRCODE('6')
#define ERRCODE_FENCE_TOKEN_REFUSED		LOCKFENCE_ERRCODE('7')
#define ERRCODE_FENCE_VALIDATOR_UNAVAILABLE LOCKFENCE_ERRCODE('8')
#define ERRCODE_UNFENCEABLE_OPERATION	LOCKFENCE_ERRCODE('9')

#endif							/* LOCKFENCE_H */
