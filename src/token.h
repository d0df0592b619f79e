/*
 * token.h
 *		The fencing token: compared, split, printed.
 */
#ifndef LOCKFENCE_TOKEN_H
#define LOCKFENCE_TOKEN_H

#include "lockfence.h"

/* How a token stands to a mark, or to what stands for one. */
typedef enum Standing
{
	STALE,
	REPEATED,					/* equal, and each is of one transaction only (fence.c) */
	EQUAL,
	HIGHER
} Standing;

/*
 * The one comparison of a token with a mark, on every path, and with what stands for
 * a mark: a token stored in a row, the floor, the minimum.
 */
static inline Standing
lockfence_compare(FenceToken token, FenceToken mark)
{
	return token < mark ? STALE : token > mark ? HIGHER : EQUAL;
}

extern int	lockfence_token_epoch(FenceToken token);
extern int64 lockfence_token_revision(FenceToken token);
extern char *lockfence_token_text(FenceToken token);

#endif							/* LOCKFENCE_TOKEN_H */
