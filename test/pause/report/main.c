/*
 * main.c
 *	  pause-report DIR: the report of a run, one HTML file that needs nothing else.
 *
 * Reads DIR/results.tsv, DIR/facts.tsv and DIR/N-*.jsonl; writes DIR/report.html.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check/history.h"
#include "figures.h"
#include "page.h"
#include "svg.h"

static const char *dir;

static FILE *
open_in(const char *name, const char *mode)
{
	char		path[600];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return fopen(path, mode);
}

/* Splits a line at its tabs; missing fields are empty. */
static void
split(char *line, char **fields, int n)
{
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < n; i++)
	{
		fields[i] = line ? line : "";
		if (line && (line = strchr(line, '\t')))
			*line++ = '\0';
	}
}

static void
each_line(const char *name, int n, void (*take) (FILE *out, char **fields, void *arg),
		  FILE *out, void *arg)
{
	FILE	   *f = open_in(name, "r");
	char	   *line = NULL;
	size_t		size = 0;
	char	   *fields[8];

	while (f && getline(&line, &size, f) > 0)
	{
		split(line, fields, n);
		take(out, fields, arg);
	}
	free(line);
	if (f)
		fclose(f);
}

static void
take_row(FILE *out, char **fields, void *proof)
{
	if (strcmp(fields[0], proof) == 0)
		page_row(out, fields);
}

static void
take_count(FILE *out, char **fields, void *arg)
{
	int		   *counted = arg;

	(void) out;
	counted[strcmp(fields[4], "holds") == 0 ? 0 : strcmp(fields[4], "FAILS") == 0 ? 1 : 2]++;
}

static void
take_fact(FILE *out, char **fields, void *arg)
{
	(void) arg;
	page_fact(out, fields[0], fields[1]);
}

static int
is_history(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && strcmp(dot, ".jsonl") == 0;
}

static void
draw(FILE *out, char proof, json_t *events, const char *name)
{
	story		s;

	story_build(&s, events);
	fprintf(out, "<figure><figcaption>%s</figcaption>", page_history_title(name));
	switch (proof)
	{
		case '1': figure_pause(out, &s); break;
		case '2': figure_partition(out, &s); break;
		case '3': figure_restore(out, &s); break;
		case '4': figure_storm(out, events, &s); break;
		case '5':
			if (strcmp(name, "5-turns.jsonl") == 0)
				figure_partition(out, &s);
			else
				figure_pause(out, &s);
			break;
		default: break;
	}
	fputs("</figure>\n", out);
	story_free(&s);
}

static void
draw_histories(FILE *out, const char *proof)
{
	struct dirent **entries;
	int			n = scandir(dir, &entries, is_history, alphasort);

	for (int i = 0; i < n; i++)
	{
		char		path[600];
		char		problem[200];

		snprintf(path, sizeof path, "%s/%.255s", dir, entries[i]->d_name);
		if (entries[i]->d_name[0] == *proof)
		{
			json_t	   *events = history_read(path, problem, sizeof problem);

			if (json_array_size(events) > 0 && !*problem)
				draw(out, *proof, events, entries[i]->d_name);
			json_decref(events);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static void
take_seen(FILE *out, char **fields, void *arg)
{
	int		   *seen = arg;

	(void) out;
	if (fields[0][0] >= '1' && fields[0][0] <= '9')
		seen[fields[0][0] - '0'] = 1;
}

int
main(int argc, char **argv)
{
	FILE	   *out;
	int			counted[3] = {0};
	int			seen[10] = {0};

	if (argc != 2)
	{
		fprintf(stderr, "usage: pause-report DIR\n");
		return 64;
	}
	dir = argv[1];
	out = open_in("report.html", "w");
	if (out == NULL)
	{
		perror("report.html");
		return 1;
	}
	each_line("results.tsv", 5, take_count, out, counted);
	each_line("results.tsv", 5, take_seen, out, seen);
	page_begin(out, counted[0], counted[1], counted[2]);
	each_line("facts.tsv", 2, take_fact, out, NULL);
	page_begin_proofs(out);
	figure_legend(out);
	for (int p = 1; p < 10; p++)
	{
		char		proof[2] = {(char) ('0' + p), '\0'};

		if (!seen[p])
			continue;
		page_begin_proof(out, p);
		each_line("results.tsv", 5, take_row, out, proof);
		page_end_table(out);
		draw_histories(out, proof);
	}
	page_end(out);
	return fclose(out) != 0;
}
