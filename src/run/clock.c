/*
 * clock.c
 *		The clock that time limits are measured by.
 *
 * It goes on while the machine is suspended, as the clock of the server does that
 * decides when a lease ends, and no change of the date moves it.  On Linux
 * CLOCK_MONOTONIC stands still then.
 */
#include "clock.h"

#include <time.h>

#ifndef CLOCK_BOOTTIME
#define CLOCK_BOOTTIME CLOCK_MONOTONIC
#endif

Millis
clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (Millis) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
