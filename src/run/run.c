/*
 * run.c
 *		lockfence-run: runs a command under a lease.
 *
 * This process watches over the command: signals, the time, what the keeper says
 * (keeper.c).  It waits for nothing else, so that the command is stopped in time
 * whatever becomes of the network.
 */
#include <signal.h>
#include <stdlib.h>

#include "command.h"
#include "lease.h"
#include "message.h"
#include "options.h"
#include "signals.h"

typedef struct Stop
{
	bool		begun;			/* TERM was sent */
	Millis		kill_at;
} Stop;

static void
pass_on_signals(const Command *command)
{
	int			signal;

	while ((signal = signals_next()) != 0)
	{
		command_signal(command, signal);
		if (signal == SIGTSTP)
			raise(SIGSTOP);
		/* stopped, it could not act on the signal; and it goes on when lockfence-run does */
		command_signal(command, SIGCONT);
	}
}

/*
 * Stops the command if the lease is lost, or has not been renewed and ends soon.
 * It has to be stopped by the end of the lease, and soon after the loss.
 */
static void
stop_in_time(const Lease *lease, const Command *command, Stop *stop)
{
	Millis		now = clock_now();
	Millis		grace = lease->options->kill_after;

	if (!stop->begun && (lease->lost || now >= lease->ends - grace))
	{
		complain("stopping the command: the lease of \"%s\" %s", lease->options->resource,
				 lease->lost ? "is lost" : "could not be renewed in time");
		stop->begun = true;
		stop->kill_at = now + grace < lease->ends ? now + grace : lease->ends;
		command_signal(command, SIGTERM);
		command_signal(command, SIGCONT);
	}
	if (stop->begun && now >= stop->kill_at)
		command_signal(command, SIGKILL);
}

static Millis
next_step(Lease *lease, const Stop *stop)
{
	Millis		term_at = lease->ends - lease->options->kill_after;
	Millis		keep_at;

	/* what KILL does not end at once, it ends when the system lets go of it */
	if (stop->begun)
		return stop->kill_at > clock_now() ? stop->kill_at : clock_now() + 100;
	keep_at = lease_keep(lease);
	return keep_at < term_at ? keep_at : term_at;
}

/* Until the command has ended; returns the exit status. */
static int
watch(Lease *lease, const Command *command)
{
	Stop		stop = {.begun = false};
	int			status;

	while (!command_has_ended(command))
	{
		stop_in_time(lease, command, &stop);
		if (signals_wait(lease->fd, next_step(lease, &stop)))
			lease_read(lease);
		pass_on_signals(command);
	}
	/* what it has started is not to go on without the lease */
	if (stop.begun)
		command_signal(command, SIGKILL);
	status = command_status(command);
	return stop.begun ? STATUS_LOST : status;
}

int
main(int argc, char **argv)
{
	Options		options;
	Lease		lease;
	Command		command;
	int			status;

	read_options(argc, argv, &options);
	signals_catch();
	lease_open(&lease, &options);
	if (lease_acquire(&lease, &status))
	{
		command_start(&command, &lease);
		status = watch(&lease, &command);
		lease_release(&lease);
	}
	lease_close(&lease);
	return status;
}
