/*
 * granted.h
 *		The session's grant, presented first.
 */
#ifndef LOCKFENCE_GRANTED_H
#define LOCKFENCE_GRANTED_H

#include "check.h"
#include "grant.h"

extern void lockfence_present_granted(const FenceCheck *check, FenceToken token);
extern void lockfence_present_granted_lock(const FenceCheck *check, FenceToken token);

/* Present what the session was granted for the resource, unless that is the token that comes now. */
static inline void
lockfence_present_grant_first(const FenceCheck *check, FenceToken token)
{
	if (lockfence_session_has_grant())
		lockfence_present_granted(check, token);
}

#endif							/* LOCKFENCE_GRANTED_H */
