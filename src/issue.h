/*
 * issue.h
 *		Tokens that the fence gives itself.
 */
#ifndef LOCKFENCE_ISSUE_H
#define LOCKFENCE_ISSUE_H

#include "lockfence.h"

extern FenceToken lockfence_issue_token(const char *resource, bool no_wait);

#endif							/* LOCKFENCE_ISSUE_H */
