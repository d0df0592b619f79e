/*
 * token.c
 *		The fencing token as a value: split, printed.
 *
 * No catalog, no state.  Tokens are int8 from end to end: nothing here or
 * elsewhere goes through a float, which would round above 2^53.
 */
#include "postgres.h"

#include "lockfence.h"
#include "token.h"

/* The epoch of a token, 0..32767. */
int
lockfence_token_epoch(FenceToken token)
{
	return (int) (token >> LOCKFENCE_REVISION_BITS);
}

/* The revision of a token, 0..2^48-1. */
int64
lockfence_token_revision(FenceToken token)
{
	return token & LOCKFENCE_MAX_REVISION;
}

/* A token with its parts, as every message shows it. */
char *
lockfence_token_text(FenceToken token)
{
	if (token <= 0)
		return psprintf(INT64_FORMAT, token);
	return psprintf(INT64_FORMAT " (epoch %d, revision " INT64_FORMAT ")",
					token, lockfence_token_epoch(token), lockfence_token_revision(token));
}
