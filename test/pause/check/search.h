/*
 * search.h
 *	  Decides whether one lock's operations can be put in an order.
 */
#ifndef CHECK_SEARCH_H
#define CHECK_SEARCH_H

#include <stddef.h>

#include "history.h"

typedef enum verdict
{
	HISTORY_GOOD,
	HISTORY_BAD,
	HISTORY_UNDECIDED			/* gave up: too many states */
} verdict;

/* reason is filled unless the verdict is HISTORY_GOOD. */
extern verdict search_lock(const lock_history *lock, char *reason, size_t size);

#endif
