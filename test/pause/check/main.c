/*
 * main.c
 *	  pause-check: decides recorded histories.
 *
 *	  pause-check FILE...		exit 0 all good, 1 one is not, 2 undecided or unreadable
 *	  pause-check --mutants FILE	also breaks the history in every known way; each
 *								mutant that fits the history must be rejected
 *	  pause-check --mutants --keep DIR FILE	leaves the mutants there
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "mutate.h"
#include "search.h"

static const char *keep_dir;

static int
decide(json_t *events, char *reason, size_t size, int *nops)
{
	history		h;
	int			result = HISTORY_GOOD;

	history_build(&h, events);
	if (nops)
		*nops = h.nops;
	if (h.problem[0])
	{
		snprintf(reason, size, "%s", h.problem);
		result = HISTORY_BAD;
	}
	for (int l = 0; l < h.nlocks && result == HISTORY_GOOD; l++)
	{
		char		why[400];

		result = search_lock(&h.locks[l], why, sizeof why);
		if (result != HISTORY_GOOD)
			snprintf(reason, size, "%s: %s", h.locks[l].name, why);
	}
	history_free(&h);
	return result;
}

/* As a history, one event per line, beside the others' mutants. */
static void
keep_mutant(json_t *events, const char *of, const char *name)
{
	const char *slash = strrchr(of, '/');
	const char *base = slash ? slash + 1 : of;
	char		path[1024];
	json_t	   *event;
	size_t		i;
	FILE	   *f;

	snprintf(path, sizeof path, "%s/%.*s %s.jsonl", keep_dir, (int) strcspn(base, "."), base, name);
	for (char *c = path + strlen(keep_dir); *c; c++)
		if (*c == ' ')
			*c = '-';
	f = fopen(path, "w");
	if (f == NULL)
	{
		perror(path);
		return;
	}
	json_array_foreach(events, i, event)
	{
		json_dumpf(event, f, JSON_COMPACT);
		fputc('\n', f);
	}
	fclose(f);
}

static int
check_mutants(json_t *events, const char *path)
{
	int			rejected = 0;
	int			made = 0;

	for (int m = 0; m < nmutants; m++)
	{
		json_t	   *broken = json_deep_copy(events);
		char		reason[512] = "";

		if (mutants[m].apply(broken))
		{
			int			result = decide(broken, reason, sizeof reason, NULL);

			made++;
			if (keep_dir)
				keep_mutant(broken, path, mutants[m].name);
			rejected += result == HISTORY_BAD;
			printf("  mutant %-22s %s%s%s\n", mutants[m].name,
				   result == HISTORY_BAD ? "rejected" : "NOT REJECTED",
				   *reason ? ": " : "", reason);
		}
		else
			printf("  mutant %-22s does not fit this history\n", mutants[m].name);
		json_decref(broken);
	}
	printf("  mutants: %d made, %d rejected\n", made, rejected);
	return made == rejected ? 0 : 1;
}

static int
check_file(const char *path, int with_mutants)
{
	char		reason[512];
	json_t	   *events = history_read(path, reason, sizeof reason);
	int			nops;
	int			result;

	if (*reason)
	{
		printf("%s: unreadable: %s\n", path, reason);
		return 2;
	}
	result = decide(events, reason, sizeof reason, &nops);
	printf("%s: %s, %d operations%s%s\n", path,
		   result == HISTORY_GOOD ? "good" : result == HISTORY_BAD ? "BAD" : "undecided",
		   nops, *reason && result != HISTORY_GOOD ? ": " : "",
		   result == HISTORY_GOOD ? "" : reason);
	if (result == HISTORY_GOOD && with_mutants)
		result = check_mutants(events, path) ? HISTORY_BAD : HISTORY_GOOD;
	json_decref(events);
	return result;
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"mutants", 0, NULL, 'm'}, {"keep", 1, NULL, 'k'}, {NULL, 0, NULL, 0}
	};
	int			option;
	int			with_mutants = 0;
	int			worst = 0;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (option)
		{
			case 'm': with_mutants = 1; break;
			case 'k': keep_dir = optarg; break;
			default: optind = argc;
		}
	if (optind >= argc)
	{
		fprintf(stderr, "usage: pause-check [--mutants [--keep DIR]] HISTORY...\n");
		return 2;
	}
	for (int i = optind; i < argc; i++)
	{
		int			result = check_file(argv[i], with_mutants);

		if (result > worst)
			worst = result;
	}
	return worst;
}
