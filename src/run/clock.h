/*
 * clock.h
 *		See clock.c.
 */
#ifndef RUN_CLOCK_H
#define RUN_CLOCK_H

#include <stdint.h>

typedef int64_t Millis;

extern Millis clock_now(void);

#endif
