/*
 * issue.h
 *		Tokens that the fence gives itself.
 */
#ifndef LOCKFENCE_ISSUE_H
#define LOCKFENCE_ISSUE_H

#include "lockfence.h"

/* What an issue depends on. */
typedef struct IssueTerms
{
	bool		no_wait;		/* fail where a transaction would have to be waited for */
	bool		only_if_mark;	/* fail if the mark is not this one */
	FenceToken	mark;			/* ... 0: that there is none */
} IssueTerms;

extern FenceToken lockfence_issue_token(const char *resource, IssueTerms terms);

#endif							/* LOCKFENCE_ISSUE_H */
