/*
 * breaker.h
 *		Whether this backend may ask, while the service may be down.
 */
#ifndef LOCKFENCE_VALIDATE_BREAKER_H
#define LOCKFENCE_VALIDATE_BREAKER_H

#include "settings.h"

typedef enum Verdict
{
	VERDICT_NONE,				/* the request was cancelled */
	VERDICT_GOOD,				/* the service answers */
	VERDICT_BAD
} Verdict;

extern bool lockfence_breaker_enter(uint64 deadline, Report *report);
extern void lockfence_breaker_leave(Verdict verdict);

#endif							/* LOCKFENCE_VALIDATE_BREAKER_H */
