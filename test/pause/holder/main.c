/*
 * main.c
 *	  lockfence-hold: a shell script holds a lock.
 *
 *	  lockfence-hold --url URL --resource NAME [--dsn DSN] [options] -- COMMAND...
 *
 * Runs COMMAND while holding the lock, in a process group of its own, with
 * LOCKFENCE_RESOURCE and LOCKFENCE_TOKEN in its environment.  With --dsn the
 * token is presented to PostgreSQL before the command starts.  When the holder is
 * fenced, the group is sent SIGTERM, and SIGKILL after the grace time.
 *
 * Exit status: the command's own; 75 the lock was not granted in time; 76 fenced;
 * 77 PostgreSQL refused the token; 64 wrong usage.
 */
#include <curl/curl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/clock.h"
#include "holder.h"
#include "present.h"

enum
{
	EXIT_USAGE = 64, EXIT_NOT_GRANTED = 75, EXIT_FENCED = 76, EXIT_REFUSED = 77
};

typedef struct settings
{
	lf_options	options;
	const char *resource;
	const char *dsn;
	double		wait_s;
	double		grace_s;
	char	  **command;
} settings;

static void
say_fenced(void *arg, const char *why)
{
	(void) arg;
	fprintf(stderr, "lockfence-hold: fenced: %s\n", why);
}

static void
usage(void)
{
	fprintf(stderr,
			"usage: lockfence-hold --url URL --resource NAME [options] -- COMMAND...\n"
			"  --ca FILE --cert FILE --key FILE   mutual TLS\n"
			"  --socket PATH   a unix socket instead of TCP\n"
			"  --ttl SECONDS   of the session (15)\n"
			"  --wait SECONDS  for the lock (0: one attempt)\n"
			"  --dsn DSN       present the token to this PostgreSQL first\n"
			"  --grace SECONDS between SIGTERM and SIGKILL when fenced (2)\n");
	exit(EXIT_USAGE);
}

static void
set_option(settings *s, int option)
{
	switch (option)
	{
		case 'u': s->options.url = optarg; break;
		case 'a': s->options.ca = optarg; break;
		case 'c': s->options.cert = optarg; break;
		case 'k': s->options.key = optarg; break;
		case 's': s->options.unix_socket = optarg; break;
		case 't': s->options.ttl_s = atoi(optarg); break;
		case 'r': s->resource = optarg; break;
		case 'd': s->dsn = optarg; break;
		case 'w': s->wait_s = atof(optarg); break;
		case 'g': s->grace_s = atof(optarg); break;
		default: usage();
	}
}

static settings
read_settings(int argc, char **argv)
{
	static const struct option longs[] = {
		{"url", 1, NULL, 'u'}, {"ca", 1, NULL, 'a'}, {"cert", 1, NULL, 'c'},
		{"key", 1, NULL, 'k'}, {"socket", 1, NULL, 's'}, {"ttl", 1, NULL, 't'},
		{"resource", 1, NULL, 'r'}, {"dsn", 1, NULL, 'd'}, {"wait", 1, NULL, 'w'},
		{"grace", 1, NULL, 'g'}, {NULL, 0, NULL, 0}
	};
	settings	s = {.options = {.ttl_s = 15, .on_fence = say_fenced}, .grace_s = 2};
	int			option;

	while ((option = getopt_long(argc, argv, "+", longs, NULL)) != -1)
		set_option(&s, option);
	if (s.options.url == NULL || s.resource == NULL || optind >= argc)
		usage();
	s.command = argv + optind;
	return s;
}

static void
present_token(const settings *s, int64_t token)
{
	PGconn	   *conn = PQconnectdb(s->dsn);
	char		state[6] = "08001";
	int			good = PQstatus(conn) == CONNECTION_OK &&
		strcmp(lf_present(conn, s->resource, token, state), "00000") == 0;

	if (!good)
		fprintf(stderr, "lockfence-hold: the token was not accepted (%s): %s", state,
				PQerrorMessage(conn));
	PQfinish(conn);
	if (!good)
		exit(EXIT_REFUSED);
}

static pid_t
start_command(const settings *s, int64_t token, const sigset_t *old)
{
	char		text[32];
	pid_t		pid = fork();

	if (pid != 0)
	{
		if (pid > 0)
			setpgid(pid, pid);
		return pid;
	}
	setpgid(0, 0);
	sigprocmask(SIG_SETMASK, old, NULL);
	snprintf(text, sizeof text, "%" PRId64, token);
	setenv("LOCKFENCE_TOKEN", text, 1);
	setenv("LOCKFENCE_RESOURCE", s->resource, 1);
	execvp(s->command[0], s->command);
	perror(s->command[0]);
	_exit(127);
}

static int
status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void
end_group(pid_t pid, double grace_s)
{
	int64_t		until = clock_us() + (int64_t) (grace_s * 1e6);

	kill(-pid, SIGTERM);
	kill(-pid, SIGCONT);
	while (clock_us() < until && waitpid(pid, NULL, WNOHANG) == 0)
		sleep_us(20000);
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Waits for the command, the fence, or a signal to hand on. */
static int
watch_command(lf_holder *h, pid_t pid, const settings *s, const sigset_t *watched)
{
	const struct timespec tick = {0, 50000000};
	int			status;

	for (;;)
	{
		int			sig = sigtimedwait(watched, NULL, &tick);

		if (waitpid(pid, &status, WNOHANG) == pid)
			return status_of(status);
		if (lf_holder_check(h) == LF_FENCED)
		{
			end_group(pid, s->grace_s);
			return EXIT_FENCED;
		}
		if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP)
			kill(-pid, sig);
	}
}

int
main(int argc, char **argv)
{
	settings	s = read_settings(argc, argv);
	char		message[200];
	int64_t		token;
	sigset_t	watched;
	sigset_t	old;
	lf_holder  *h;
	pid_t		pid;
	int			status = 127;

	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGINT);
	sigaddset(&watched, SIGTERM);
	sigaddset(&watched, SIGHUP);
	curl_global_init(CURL_GLOBAL_ALL);
	h = lf_holder_open(&s.options, message, sizeof message);
	if (h == NULL || lf_holder_acquire(h, s.resource, (int) (s.wait_s * 1000), &token) != LF_OK)
	{
		fprintf(stderr, "lockfence-hold: not granted: %s\n", h ? lf_holder_message(h) : message);
		return EXIT_NOT_GRANTED;
	}
	if (s.dsn)
		present_token(&s, token);
	sigprocmask(SIG_BLOCK, &watched, &old);
	pid = start_command(&s, token, &old);
	if (pid > 0)
		status = watch_command(h, pid, &s, &watched);
	if (status != EXIT_FENCED)
		lf_holder_release(h, s.resource, token);
	lf_holder_close(h);
	return status;
}
