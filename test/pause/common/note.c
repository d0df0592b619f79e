/*
 * note.c
 *	  pause-note FILE WHO WHAT PHASE [KEY=VALUE | KEY:=NUMBER]...
 *
 * Lets the shell scripts write to a history, on the same clock as everybody.
 * WHAT "-" only prints the time, in microseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "record.h"

static json_t *
read_fields(char **args)
{
	json_t	   *fields = json_object();

	for (; *args; args++)
	{
		char	   *eq = strchr(*args, '=');

		if (eq == NULL)
			continue;
		*eq = '\0';
		if (eq > *args && eq[-1] == ':')
		{
			eq[-1] = '\0';
			json_object_set_new(fields, *args, json_integer(strtoll(eq + 1, NULL, 10)));
		}
		else
			json_object_set_new(fields, *args, json_string(eq + 1));
	}
	return fields;
}

int
main(int argc, char **argv)
{
	recorder	rec;

	if (argc == 2 && strcmp(argv[1], "-") == 0)
	{
		printf("%lld\n", (long long) clock_us());
		return 0;
	}
	if (argc < 5 || recorder_open(&rec, argv[1], argv[2]) < 0)
	{
		fprintf(stderr, "usage: pause-note FILE WHO WHAT PHASE [KEY=VALUE | KEY:=NUMBER]...\n");
		return 64;
	}
	record(&rec, argv[3], argv[4], "o", read_fields(argv + 5));
	return 0;
}
