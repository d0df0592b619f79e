/*
 * validator.h
 *		Asking whether a token was granted.
 */
#ifndef LOCKFENCE_VALIDATOR_H
#define LOCKFENCE_VALIDATOR_H

#include "check.h"

extern void lockfence_validator_init(void);
extern bool lockfence_has_validator(const FenceCheck *check);
extern bool lockfence_ask_validator(const FenceCheck *check);
extern bool lockfence_vouch_for(const FencedWrite *write, FenceToken token);
extern void lockfence_count_open(void);
extern const char *lockfence_visible_to_asker(const char *text);
extern void lockfence_validator_at_syscache(int cacheid);

#endif							/* LOCKFENCE_VALIDATOR_H */
