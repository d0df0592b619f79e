/*
 * test.c
 *	  The checker's own tests: good histories pass, each mutant is rejected,
 *	  and 15,000 operations take less than a second.
 */
#include <stdio.h>
#include <string.h>

#include "../common/clock.h"
#include "generate.h"
#include "mutate.h"
#include "search.h"

static int	tests;
static int	failed;

static void
ok(int good, const char *fmt, const char *detail)
{
	tests++;
	if (!good)
		failed++;
	printf("%s %d - %s%s%s\n", good ? "ok" : "not ok", tests, fmt, *detail ? ": " : "", detail);
}

static int
decide(json_t *events, char *reason, size_t size)
{
	history		h;
	int			result = HISTORY_GOOD;

	*reason = '\0';
	history_build(&h, events);
	if (h.problem[0])
	{
		snprintf(reason, size, "%s", h.problem);
		result = HISTORY_BAD;
	}
	for (int l = 0; l < h.nlocks && result == HISTORY_GOOD; l++)
		result = search_lock(&h.locks[l], reason, size);
	history_free(&h);
	return result;
}

/* "stale" and "denied" are refusals, "valid" is a write that a validator let through. */
static const char *
phase_of(const char *word)
{
	return strcmp(word, "stale") == 0 || strcmp(word, "denied") == 0 ? "no" :
		strcmp(word, "valid") == 0 ? "ok" : word;
}

/* Many lines of text into events, so that a case reads like a history. */
static json_t *
events_of(const char *text)
{
	json_t	   *events = json_array();

	while (*text)
	{
		char		line[512];
		const char *end = strchr(text, '\n');
		char		what[16], phase[16], id[16], token[32];
		long		t;
		long		n = -1;
		json_t	   *event;

		snprintf(line, sizeof line, "%.*s", (int) (end - text), text);
		text = end + 1;
		if (sscanf(line, "%ld %15s %15s %15s %31s %ld", &t, what, phase, id, token, &n) < 5)
			continue;
		event = json_pack("{s:I s:s s:s s:s s:s s:s s:s}", "t", (json_int_t) t, "who", id,
						  "what", what, "phase", phase_of(phase),
						  "id", id, "lock", "x", "token", token);
		if (strcmp(phase, "stale") == 0)
			json_object_set_new(event, "code", json_string("LF001"));
		if (strcmp(phase, "denied") == 0)
			json_object_set_new(event, "code", json_string("LF007"));
		if (strcmp(phase, "denied") == 0 || strcmp(phase, "valid") == 0)
			json_object_set_new(event, "validated", json_integer(1));
		if (n >= 0)
			json_object_set_new(event, "n", json_integer(n));
		json_array_append_new(events, event);
	}
	return events;
}

static void
case_is(const char *name, int expected, const char *text)
{
	json_t	   *events = events_of(text);
	char		reason[512];

	ok(decide(events, reason, sizeof reason) == expected, name,
	   expected == HISTORY_GOOD ? "" : reason);
	json_decref(events);
}

static void
hand_made_cases(void)
{
	case_is("a write is accepted, a later holder's too", HISTORY_GOOD,
			"10 acquire call a 0\n20 acquire ok a 5\n30 write call w1 5\n40 write ok w1 5\n"
			"50 release call r 5\n60 release ok r 5\n70 acquire call b 0\n80 acquire ok b 9\n"
			"90 write call w2 9\n95 write ok w2 9\n");
	case_is("a grant that overlaps the release fits", HISTORY_GOOD,
			"10 acquire call a 0\n20 acquire ok a 5\n50 release call r 5\n"
			"55 acquire call b 0\n75 acquire ok b 9\n90 release ok r 5\n");
	case_is("a grant before the release was called does not", HISTORY_BAD,
			"10 acquire call a 0\n20 acquire ok a 5\n30 acquire call b 0\n40 acquire ok b 9\n"
			"50 release call r 5\n60 release ok r 5\n");
	case_is("a refusal without a newer token is a fault", HISTORY_BAD,
			"10 acquire call a 0\n20 acquire ok a 5\n30 write call w1 5\n40 write stale w1 5\n");
	case_is("a write whose end is unknown can explain a refusal", HISTORY_GOOD,
			"10 acquire call a 0\n20 acquire ok a 5\n22 release call r 5\n23 release ok r 5\n"
			"24 acquire call b 0\n26 acquire ok b 9\n28 write call u 9\n"
			"30 write call w1 5\n40 write stale w1 5\n");
	case_is("the write order is the one the row counted", HISTORY_BAD,
			"10 acquire call a 0\n20 acquire ok a 5\n22 release call r 5\n23 release ok r 5\n"
			"24 acquire call b 0\n26 acquire ok b 9\n30 write call w1 5 1\n60 write ok w1 5 2\n"
			"31 write call w2 9 1\n59 write ok w2 9 1\n");
	case_is("a token never granted cannot be accepted", HISTORY_BAD,
			"10 acquire call a 0\n20 acquire ok a 5\n30 write call w1 7\n40 write ok w1 7\n");
	case_is("the holder's write is let through by the validator", HISTORY_GOOD,
			"10 acquire call a 0\n20 acquire ok a 5\n30 write call w1 5\n40 write valid w1 5\n");
	case_is("a write after the release is not", HISTORY_BAD,
			"10 acquire call a 0\n20 acquire ok a 5\n22 release call r 5\n23 release ok r 5\n"
			"30 write call w1 5\n40 write valid w1 5\n");
	case_is("the validator refuses a write after the release", HISTORY_GOOD,
			"10 acquire call a 0\n20 acquire ok a 5\n22 release call r 5\n23 release ok r 5\n"
			"30 write call w1 5\n40 write denied w1 5\n");
	case_is("it does not refuse the holder", HISTORY_BAD,
			"10 acquire call a 0\n20 acquire ok a 5\n30 write call w1 5\n40 write denied w1 5\n");
	case_is("a token goes up with every grant", HISTORY_BAD,
			"10 acquire call a 0\n20 acquire ok a 5\n30 release call r 5\n40 release ok r 5\n"
			"50 acquire call b 0\n60 acquire ok b 4\n");
}

static void
generated_cases(void)
{
	char		reason[512];
	char		name[128];

	for (unsigned seed = 1; seed <= 20; seed++)
	{
		json_t	   *events = generate_history(1000, seed);

		snprintf(name, sizeof name, "good history, seed %u", seed);
		ok(decide(events, reason, sizeof reason) == HISTORY_GOOD, name, "");
		json_decref(events);
	}
	for (int m = 0; m < nmutants; m++)
	{
		json_t	   *events = generate_history(1000, 7);

		snprintf(name, sizeof name, "mutant rejected: %s", mutants[m].name);
		ok(mutants[m].apply(events) && decide(events, reason, sizeof reason) == HISTORY_BAD,
		   name, reason);
		json_decref(events);
	}
}

static void
timed(const char *name, json_t *events, int expected)
{
	char		reason[512];
	int64_t		start = clock_us();
	int			result = decide(events, reason, sizeof reason);
	int64_t		took = clock_us() - start;
	char		detail[64];

	snprintf(detail, sizeof detail, "%.3f s", took / 1e6);
	ok(result == expected && took < 1000000, name, detail);
	json_decref(events);
}

static void
speed_cases(void)
{
	json_t	   *late = generate_history(15000, 42);
	json_t	   *event;
	size_t		i;

	timed("15,000 operations in under a second", generate_history(15000, 42), HISTORY_GOOD);
	/* the worst place for a fault is the end: everything before it fits */
	for (i = json_array_size(late); i-- > 0;)
	{
		event = json_array_get(late, i);
		if (json_object_get(event, "code") == NULL)
			continue;
		json_object_set_new(event, "phase", json_string("ok"));
		break;
	}
	timed("15,000 operations with a fault at the end", late, HISTORY_BAD);
}

int
main(void)
{
	hand_made_cases();
	generated_cases();
	speed_cases();
	printf("1..%d\n", tests);
	return failed ? 1 : 0;
}
