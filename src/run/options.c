/*
 * options.c
 *		The command line: options as flock(1) and timeout(1) have them.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"

#define MAX_DURATION 1e10		/* seconds; the server knows how long a lease may be */

static const char HELP[] =
"Runs a command under a lease of lockfence_lease, whose token its writes present.\n"
"\n"
"Usage:\n"
"  " PROGRAM " --resource NAME [OPTION]... [--] COMMAND [ARGUMENT]...\n"
"\n"
"Options:\n"
"  -r, --resource NAME            the resource to lease, as its fence names it\n"
"  -t, --ttl DURATION             how long the lease lives if it is not renewed (60s)\n"
"  -w, --wait DURATION            wait so long for another holder's lease to end (without limit)\n"
"  -n, --no-wait                  do not wait\n"
"  -E, --conflict-exit-code CODE  the exit status if another holder has the lease (1)\n"
"  -k, --kill-after DURATION      from TERM to KILL, if the lease is lost (a sixth of ttl, 10s at most)\n"
"  -o, --owner NAME               what the view leases shows as the owner (HOST:PID)\n"
"  -d, --dbname CONNINFO          the database, as psql takes it (by PGHOST, PGDATABASE, ...)\n"
"  -f, --foreground               leave the command in the foreground of the terminal\n"
"  -V, --version                  print the version, and exit\n"
"  -?, -h, --help                 print this help, and exit\n"
"\n"
"A DURATION is a number of seconds, or has a suffix: ms, s, m, h or d.\n"
"\n"
"Exit status: the command's; 1 if another holder has the lease, 124 if the lease was\n"
"lost and the command was stopped, 125 if " PROGRAM " failed, 126 if the command cannot\n"
"be executed, 127 if it is not found, 128 and the number of the signal that ended it.\n";

static const char SHORT_OPTIONS[] = "+r:t:w:nE:k:o:d:fVh?";
static const struct option LONG_OPTIONS[] = {
	{"resource", required_argument, NULL, 'r'},
	{"ttl", required_argument, NULL, 't'},
	{"wait", required_argument, NULL, 'w'},
	{"no-wait", no_argument, NULL, 'n'},
	{"conflict-exit-code", required_argument, NULL, 'E'},
	{"kill-after", required_argument, NULL, 'k'},
	{"owner", required_argument, NULL, 'o'},
	{"dbname", required_argument, NULL, 'd'},
	{"foreground", no_argument, NULL, 'f'},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0}
};

static void __attribute__((noreturn))
print_and_exit(const char *text)
{
	fputs(text, stdout);
	if (fflush(stdout) != 0)
		fail_by_errno("write to standard output");
	exit(EXIT_SUCCESS);
}

static void
reject_usage(void)
{
	fail("try \"%s --help\"", PROGRAM);
}

/* The seconds of a unit; 0 if there is no such unit. */
static double
unit_of(const char *suffix)
{
	static const struct
	{
		const char *name;
		double		seconds;
	}			units[] = {{"", 1}, {"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(suffix, units[i].name) == 0)
			return units[i].seconds;
	return 0;
}

static Millis
read_duration(const char *option, const char *text)
{
	char	   *end;
	double		seconds = strtod(text, &end);

	seconds *= unit_of(end);
	/* the comparison is false for "nan" too; "inf" is too long */
	if (end == text || unit_of(end) == 0 || !(seconds >= 0 && seconds <= MAX_DURATION))
		fail("invalid value for --%s: \"%s\"; give a duration such as 90, 1.5s or 10m", option, text);
	return (Millis) (seconds * 1000 + 0.5);
}

static int
read_status(const char *text)
{
	char	   *end;
	long		status;

	errno = 0;
	status = strtol(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || status < 0 || status > 255)
		fail("invalid value for --conflict-exit-code: \"%s\"; give a number from 0 to 255", text);
	return (int) status;
}

static char *
default_owner(void)
{
	static char owner[300];
	char		host[256] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		fail_by_errno("get the name of this host");
	snprintf(owner, sizeof(owner), "%s:%ld", host, (long) getpid());
	return owner;
}

static void
read_option(int option, Options *options)
{
	switch (option)
	{
		case 'r':
			options->resource = optarg;
			break;
		case 't':
			options->ttl = read_duration("ttl", optarg);
			break;
		case 'w':
			options->wait = read_duration("wait", optarg);
			break;
		case 'n':
			options->wait = 0;
			break;
		case 'E':
			options->conflict_status = read_status(optarg);
			break;
		case 'k':
			options->kill_after = read_duration("kill-after", optarg);
			break;
		case 'o':
			options->owner = optarg;
			break;
		case 'd':
			options->conninfo = optarg;
			break;
		case 'f':
			options->foreground = true;
			break;
		case 'V':
			print_and_exit(PROGRAM " (lockfence) " LOCKFENCE_VERSION "\n");
		case 'h':
			print_and_exit(HELP);
		default:
			reject_usage();
	}
}

/*
 * What the options say together.  A renewal is sent every third of the TTL; with
 * half of it left for the command's end, there is time to send it again.
 */
static void
complete_options(Options *options)
{
	if (options->resource == NULL)
	{
		complain("no resource is given; use --resource");
		reject_usage();
	}
	if (strchr(options->resource, '\n') != NULL)
		fail("the name of the resource has a line break; the setting lockfence.session_grant has a grant per line");
	if (options->command[0] == NULL)
	{
		complain("no command is given");
		reject_usage();
	}
	if (options->kill_after < 0)
		options->kill_after = options->ttl < 60000 ? options->ttl / 6 : 10000;
	if (options->kill_after > options->ttl / 2)
		fail("--kill-after must be at most half of --ttl: the command has to be stopped before the lease ends");
}

void
read_options(int argc, char **argv, Options *options)
{
	int			option;

	*options = (Options) {
		.owner = default_owner(), .ttl = 60000, .wait = WAIT_FOREVER, .kill_after = -1, .conflict_status = 1
	};
	/* getopt() calls an unknown option '?' too, which is no reason to succeed */
	if (argc > 1 && strcmp(argv[1], "-?") == 0)
		print_and_exit(HELP);
	while ((option = getopt_long(argc, argv, SHORT_OPTIONS, LONG_OPTIONS, NULL)) != -1)
		read_option(option, options);
	options->command = argv + optind;
	complete_options(options);
}
