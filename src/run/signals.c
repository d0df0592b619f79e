/*
 * signals.c
 *		The signals that are for the command, and waiting for one.
 *
 * They come only while signals_wait() waits; a flag remembers each until
 * signals_next() takes it.  One that lockfence-run was started to ignore, by
 * nohup(1) say, stays ignored, by the command too.
 */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/select.h>

#include "message.h"

/* A terminal does not tell of a suspended machine; so the clock is looked at. */
#define LONGEST_WAIT 1000

/* TTOU would stop lockfence-run, and with it the renewals, for its messages. */
static const int PASSED_ON[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP};
#define PASSED_ON_COUNT (sizeof(PASSED_ON) / sizeof(PASSED_ON[0]))

static volatile sig_atomic_t received[PASSED_ON_COUNT];
static sigset_t caught;
static sigset_t mask_before;
static sigset_t mask_waiting;
static struct sigaction ttou_before;

static void
remember(int signal)
{
	for (size_t i = 0; i < PASSED_ON_COUNT; i++)
		if (PASSED_ON[i] == signal)
			received[i] = 1;
}

static void
set_action(int signal, void (*action) (int))
{
	struct sigaction act = {.sa_handler = action};

	sigemptyset(&act.sa_mask);
	sigaction(signal, &act, NULL);
}

static void
catch_unless_ignored(int signal)
{
	struct sigaction before;

	sigaction(signal, NULL, &before);
	if (before.sa_handler == SIG_IGN)
		return;
	set_action(signal, remember);
	sigaddset(&caught, signal);
}

void
signals_catch(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigemptyset(&caught);
	for (size_t i = 0; i < PASSED_ON_COUNT; i++)
		catch_unless_ignored(PASSED_ON[i]);
	/* if this was ignored, no child could be waited for */
	set_action(SIGCHLD, remember);
	sigaddset(&caught, SIGCHLD);
	sigaction(SIGTTOU, &ignore, &ttou_before);

	sigprocmask(SIG_BLOCK, &caught, &mask_before);
	mask_waiting = mask_before;
	for (size_t i = 0; i < PASSED_ON_COUNT; i++)
		sigdelset(&mask_waiting, PASSED_ON[i]);
	sigdelset(&mask_waiting, SIGCHLD);
}

/* For the command, which may be signalled before it is executed: a handler would swallow that. */
void
signals_restore(void)
{
	for (size_t i = 0; i < PASSED_ON_COUNT; i++)
		if (sigismember(&caught, PASSED_ON[i]))
			set_action(PASSED_ON[i], SIG_DFL);
	sigaction(SIGTTOU, &ttou_before, NULL);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

/*
 * For the keeper: a manager of services sends TERM to each process of a service at
 * once, and the lease is still to be released then.
 */
void
signals_ignore(void)
{
	for (size_t i = 0; i < PASSED_ON_COUNT; i++)
		set_action(PASSED_ON[i], SIG_IGN);
	set_action(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

/* A signal that was received, or 0. */
int
signals_next(void)
{
	for (size_t i = 0; i < PASSED_ON_COUNT; i++)
		if (received[i])
		{
			received[i] = 0;
			return PASSED_ON[i];
		}
	return 0;
}

/* Until there is something to read, a signal, or it is so late; tells whether there is something to read. */
bool
signals_wait(int fd, Millis until)
{
	Millis		left = until - clock_now();
	struct timespec timeout;
	fd_set		readable;

	left = left < 0 ? 0 : left > LONGEST_WAIT ? LONGEST_WAIT : left;
	timeout = (struct timespec) {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
	if (fd >= FD_SETSIZE)
		fail("too many files are open");
	FD_ZERO(&readable);
	FD_SET(fd, &readable);
	if (pselect(fd + 1, &readable, NULL, NULL, &timeout, &mask_waiting) < 0)
	{
		if (errno == EINTR)
			return false;
		fail_by_errno("wait");
	}
	return FD_ISSET(fd, &readable);
}
