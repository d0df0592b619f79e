/*
 * clock.h
 *	  The one clock of the kit: CLOCK_BOOTTIME, in microseconds.
 *
 * It goes on while the machine is suspended, which CLOCK_MONOTONIC does not,
 * and it is the same for every process, so histories need no merging by guess.
 */
#ifndef PAUSE_CLOCK_H
#define PAUSE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t
clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static inline void
sleep_us(int64_t us)
{
	struct timespec ts;

	if (us <= 0)
		return;
	ts.tv_sec = us / 1000000;
	ts.tv_nsec = (us % 1000000) * 1000;
	nanosleep(&ts, NULL);
}

#endif
