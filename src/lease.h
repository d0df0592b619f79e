/*
 * lease.h
 *		The table of grants.
 */
#ifndef LOCKFENCE_LEASE_H
#define LOCKFENCE_LEASE_H

#include "datatype/timestamp.h"

#include "issue.h"

/* columns of lockfence.lease */
#define LEASE_ATTNO_TOKEN		1
#define LEASE_ATTNO_GRANTED_AT	2
#define LEASE_ATTNO_EXPIRES_AT	3
#define LEASE_ATTNO_RESOURCE	4
#define LEASE_ATTNO_OWNER		5
#define LEASE_NATTS				5

extern bool lockfence_lease_end(const char *resource, FenceToken token, TimestampTz *end);
extern FenceToken lockfence_issue_grant(const char *resource, IssueTerms terms);
extern void lockfence_write_lease(const char *resource, const NullableDatum *columns);

#endif							/* LOCKFENCE_LEASE_H */
