/*
 * options.c
 *		The command line.
 */
#include "property.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
"Stresses a fence from many sessions and judges what was accepted, in commit order.\n"
"\n"
"  --dsn=CONNINFO        superuser on an empty database (default: the environment's);\n"
"                        wants wal_level = logical and, but for --no-prepare,\n"
"                        max_prepared_transactions > 0\n"
"  --guard=GUARD         lockfence; none: must be seen to fail; or an SQL file that\n"
"                        makes another guard under the same names (default lockfence)\n"
"  --seed=N              of all random choices (default: the clock's); the server's\n"
"                        timing still differs from run to run\n"
"  --workers=N           sessions (default 10)\n"
"  --seconds=N           (default 20)\n"
"  --transactions=N      a worker, instead of --seconds\n"
"  --isolation=LEVEL     rc, rr, ser or mixed (default mixed)\n"
"  --resources=N         a fence (default 4)\n"
"  --fences=LIST         of row,ticket,batch,note,orm,part,once,job,ledger (default all)\n"
"  --verbs=LIST          of present,update,insert,upsert,delete,merge,copy,move,truncate\n"
"  --documented-order    present() first and a row of one's own: no deadlock may happen\n"
"  --no-chaos            no kills, no raise_mark(), no prune()\n"
"  --no-prepare          no prepared transactions, so that resources are held by the fast path\n"
"  --preempt             with lockfence.preempt = on\n"
"  --crash=COMMAND       run in the middle: it takes the server down and starts it again\n"
"  --crashes=N           run it N times, at random, and end then or after --seconds\n";

static _Noreturn void
complain(const char *what, const char *value)
{
	fprintf(stderr, "property: %s: %s\n\n%s", what, value, usage);
	exit(2);
}

static long
number(const char *text, long min, long max)
{
	char	   *end;
	long		n = strtol(text, &end, 10);

	if (*end || end == text || n < min || n > max)
		complain("not a number in range", text);
	return n;
}

static const char *
fence_name(int kind)
{
	return fences[kind].name;
}

static const char *
verb_name(int verb)
{
	return verb_names[verb];
}

/* A bit for each name in the list. */
static unsigned
name_mask(const char *list, const char *(*name) (int), int n)
{
	char		copy[256];
	char	   *word;
	unsigned	mask = 0;
	int			i;

	snprintf(copy, sizeof(copy), "%s", list);
	for (word = strtok(copy, ","); word; word = strtok(NULL, ","))
	{
		for (i = 0; i < n && strcmp(name(i), word) != 0; i++)
			;
		if (i == n)
			complain("unknown name", word);
		mask |= 1u << i;
	}
	return mask;
}

static int
isolation_level(const char *text)
{
	static const char *const names[] = {"rc", "rr", "ser", "mixed"};
	int			i;

	for (i = 0; i < 4; i++)
		if (strcmp(text, names[i]) == 0)
			return i;
	complain("unknown isolation level", text);
}

static void
set_defaults(Options *opt)
{
	memset(opt, 0, sizeof(*opt));
	opt->guard = "lockfence";
	opt->dsn = "";
	opt->seed = (uint64_t) time(NULL);
	opt->workers = 10;
	opt->seconds = 20;
	opt->isolation = N_ISOLATIONS;
	opt->resources = 4;
	opt->fence_mask = (1u << N_FENCES) - 1;
	opt->verb_mask = (1u << N_VERBS) - 1;
	opt->chaos = true;
	opt->prepare = true;
	opt->crashes = 1;
}

static const struct option long_options[] = {
	{"dsn", required_argument, NULL, 'd'},
	{"guard", required_argument, NULL, 'g'},
	{"seed", required_argument, NULL, 's'},
	{"workers", required_argument, NULL, 'w'},
	{"seconds", required_argument, NULL, 't'},
	{"transactions", required_argument, NULL, 'n'},
	{"isolation", required_argument, NULL, 'i'},
	{"resources", required_argument, NULL, 'r'},
	{"fences", required_argument, NULL, 'f'},
	{"verbs", required_argument, NULL, 'v'},
	{"documented-order", no_argument, NULL, 'o'},
	{"no-chaos", no_argument, NULL, 'c'},
	{"no-prepare", no_argument, NULL, 'P'},
	{"preempt", no_argument, NULL, 'p'},
	{"crash", required_argument, NULL, 'k'},
	{"crashes", required_argument, NULL, 'K'},
	{NULL, 0, NULL, 0}
};

static void
set_option(Options *opt, int c, const char *arg)
{
	switch (c)
	{
		case 'd': opt->dsn = arg; break;
		case 'g': opt->guard = arg; break;
		case 's': opt->seed = strtoull(arg, NULL, 10); break;
		case 'w': opt->workers = (int) number(arg, 1, MAX_WORKERS); break;
		case 't': opt->seconds = (int) number(arg, 1, 86400); break;
		case 'n': opt->transactions = number(arg, 1, 1000000000); break;
		case 'i': opt->isolation = isolation_level(arg); break;
		case 'r': opt->resources = (int) number(arg, 1, MAX_RESOURCES); break;
		case 'f': opt->fence_mask = name_mask(arg, fence_name, N_FENCES); break;
		case 'v': opt->verb_mask = name_mask(arg, verb_name, N_VERBS); break;
		case 'o': opt->documented = true; break;
		case 'c': opt->chaos = false; break;
		case 'P': opt->prepare = false; break;
		case 'p': opt->preempt = true; break;
		case 'k': opt->crash = arg; break;
		case 'K': opt->crashes = (int) number(arg, 1, MAX_CRASHES); break;
		default: fputs(usage, stderr); exit(2);
	}
}

void
parse_options(Options *opt, int argc, char **argv)
{
	int			c;

	set_defaults(opt);
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		set_option(opt, c, optarg);
	if (optind < argc)
		complain("unexpected argument", argv[optind]);
	if (opt->documented && (opt->fence_mask & ~(1u << FENCE_ROW | 1u << FENCE_TICKET)) == 0)
		complain("a row has no name to present a token for", "--documented-order");
	opt->guarded = strcmp(opt->guard, "none") != 0;
}
