/*
 * command.h
 *		See command.c.
 */
#ifndef RUN_COMMAND_H
#define RUN_COMMAND_H

#include <sys/types.h>

#include "lease.h"

typedef struct Command
{
	pid_t		pid;
	bool		alone;			/* it has no process group of its own */
} Command;

extern void command_start(Command *command, const Lease *lease);
extern void command_signal(const Command *command, int signal);
extern bool command_has_ended(const Command *command);
extern int	command_status(const Command *command);

#endif
