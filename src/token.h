/*
 * token.h
 *		The fencing token: split, printed.
 */
#ifndef LOCKFENCE_TOKEN_H
#define LOCKFENCE_TOKEN_H

#include "lockfence.h"

extern int	lockfence_token_epoch(FenceToken token);
extern int64 lockfence_token_revision(FenceToken token);
extern char *lockfence_token_text(FenceToken token);

#endif							/* LOCKFENCE_TOKEN_H */
