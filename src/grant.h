/*
 * grant.h
 *		The grant of the whole session.
 */
#ifndef LOCKFENCE_GRANT_H
#define LOCKFENCE_GRANT_H

#include "lockfence.h"

extern char *lockfence_session_grant;

/* Has the client given a grant for its session, whether or not that can be read? */
static inline bool
lockfence_session_has_grant(void)
{
	return unlikely(lockfence_session_grant[0] != '\0');
}

typedef void (*GrantVisitor) (const char *resource, FenceToken token, void *arg);

extern void lockfence_grant_init(void);
extern const char *lockfence_grant_problem(void);
extern void lockfence_require_grant_privilege(void);
extern FenceToken lockfence_granted_token(const char *resource);
extern const char *lockfence_granted_resource(FenceToken token);
extern void lockfence_visit_grants(GrantVisitor visit, void *arg);
extern void lockfence_grant_at_syscache(int cacheid);

#endif							/* LOCKFENCE_GRANT_H */
