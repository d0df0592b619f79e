/*
 * signals.h
 *		See signals.c.
 */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include <stdbool.h>

#include "clock.h"

extern void signals_catch(void);
extern void signals_restore(void);
extern void signals_ignore(void);
extern int	signals_next(void);
extern bool signals_wait(int fd, Millis until);

#endif
