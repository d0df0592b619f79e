/*
 * grant.h
 *		The grant of the whole session.
 */
#ifndef LOCKFENCE_GRANT_H
#define LOCKFENCE_GRANT_H

#include "datatype/timestamp.h"

#include "lockfence.h"

extern char *lockfence_session_grant;

/* Has the client given a grant for its session, whether or not that can be read? */
static inline bool
lockfence_session_has_grant(void)
{
	return unlikely(lockfence_session_grant[0] != '\0');
}

/* One token of it. */
typedef struct Grant
{
	const char *resource;		/* NULL: whatever is written */
	FenceToken	token;
	TimestampTz valid_until;	/* 0: without end */
} Grant;

typedef void (*GrantVisitor) (const Grant *grant, void *arg);

extern void lockfence_grant_init(void);
extern const char *lockfence_grant_problem(void);
extern void lockfence_require_grant_privilege(void);
extern const Grant *lockfence_find_grant(const char *resource);
extern const char *lockfence_granted_resource(FenceToken token);
extern void lockfence_visit_grants(GrantVisitor visit, void *arg);
extern void lockfence_grant_at_syscache(int cacheid);

#endif							/* LOCKFENCE_GRANT_H */
