/*
 * command.c
 *		The command: how it is started, what it is told of the grant, its signals, and
 *		its exit status.
 *
 * It leads a process group of its own, which gets the signals, so that they reach
 * what it has started too; with --foreground, only the command itself gets them.
 */
#include "command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "grant.h"
#include "message.h"
#include "signals.h"

static void
set_variable(const char *name, const char *value)
{
	if (setenv(name, value, 1) != 0)
		fail_by_errno("set an environment variable");
}

/*
 * What libpq gives to the server is in PGOPTIONS.  A lockfence-run that runs another
 * one leaves its grants to it, and clients without PGOPTIONS are given the token by
 * the script that starts them.
 */
static void
tell_grant(const Lease *lease)
{
	char	   *grants = grant_joined(getenv("LOCKFENCE_SESSION_GRANT"), lease->name, lease->token);
	char	   *options = grant_as_option(getenv("PGOPTIONS"), grants);

	set_variable("PGOPTIONS", options);
	set_variable("LOCKFENCE_SESSION_GRANT", grants);
	set_variable("LOCKFENCE_TOKEN", lease->token);
	free(options);
	free(grants);
}

/* Without lockfence-run there are no renewals: the command is told to end, where the system can see to that. */
static void
end_with_parent(pid_t parent)
{
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
	if (getppid() != parent)
		_exit(STATUS_FAILED);
}

static void
become_command(const Lease *lease, const Command *command, pid_t parent)
{
	char	  **argv = lease->options->command;

	if (!command->alone)
		setpgid(0, 0);
	tell_grant(lease);
	signals_restore();
	end_with_parent(parent);
	execvp(argv[0], argv);
	complain("could not execute \"%s\": %s", argv[0], strerror(errno));
	_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
}

void
command_start(Command *command, const Lease *lease)
{
	pid_t		parent = getpid();

	command->alone = lease->options->foreground;
	if ((command->pid = fork()) < 0)
		fail_by_errno("start a process");
	if (command->pid == 0)
	{
		close(lease->fd);
		become_command(lease, command, parent);
	}
	/* here too, or a signal could come before the group exists */
	if (!command->alone)
		setpgid(command->pid, command->pid);
}

void
command_signal(const Command *command, int signal)
{
	kill(command->alone ? command->pid : -command->pid, signal);
}

/* It is not waited for yet, so no other process or group gets its number. */
bool
command_has_ended(const Command *command)
{
	siginfo_t	info = {.si_pid = 0};

	return waitid(P_PID, command->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

int
command_status(const Command *command)
{
	int			status;

	while (waitpid(command->pid, &status, 0) < 0)
		if (errno != EINTR)
			fail_by_errno("wait for the command");
	return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}
