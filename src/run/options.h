/*
 * options.h
 *		See options.c.
 */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>

#include "clock.h"

#define WAIT_FOREVER INT64_MAX

typedef struct Options
{
	const char *resource;
	const char *owner;
	const char *conninfo;		/* NULL: by the environment alone */
	Millis		ttl;
	Millis		wait;			/* for another holder's lease to end */
	Millis		kill_after;		/* from TERM to KILL */
	int			conflict_status;
	bool		foreground;
	char	  **command;
} Options;

extern void read_options(int argc, char **argv, Options *options);

#endif
