/*
 * story.c
 *	  A recorded history, as what a timeline shows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/token.h"
#include "story.h"

#define GROW(array, n) \
	do { \
		if (((n) & ((n) - 1)) == 0) \
			(array) = realloc((array), sizeof *(array) * ((n) ? (n) * 2 : 1)); \
	} while (0)

static const char *
text_of(json_t *event, const char *key)
{
	const char *s = json_string_value(json_object_get(event, key));

	return s ? s : "";
}

static int64_t
time_of(json_t *event)
{
	return json_integer_value(json_object_get(event, "t"));
}

static bool
is(json_t *event, const char *what, const char *phase)
{
	return strcmp(text_of(event, "what"), what) == 0 && strcmp(text_of(event, "phase"), phase) == 0;
}

const char *
token_words(const char *token)
{
	static char buffers[2][64];
	static int	turn;
	int64_t		n;

	if (!token_parse(token, &n))
		return token;
	turn = !turn;
	snprintf(buffers[turn], sizeof buffers[turn], "epoch %" PRId64 ", revision %" PRId64,
			 token_epoch(n), token_revision(n));
	return buffers[turn];
}

static hold *
open_hold(story *s, const char *lock)
{
	for (int i = s->nholds - 1; i >= 0; i--)
		if (s->holds[i].end == 0 && strcmp(s->holds[i].lock, lock) == 0)
			return &s->holds[i];
	return NULL;
}

static void
end_hold(hold *h, int64_t t, bool lapsed)
{
	if (h == NULL)
		return;
	h->end = t;
	h->lapsed = lapsed;
}

static void
add_hold(story *s, json_t *event)
{
	const char *lock = text_of(event, "lock");

	end_hold(open_hold(s, lock), time_of(event), true);
	GROW(s->holds, s->nholds);
	s->holds[s->nholds++] = (hold) {text_of(event, "who"), lock, text_of(event, "token"),
	time_of(event)};
}

static void
add_mark(story *s, mark_kind kind, json_t *event)
{
	GROW(s->marks, s->nmarks);
	s->marks[s->nmarks++] = (mark) {kind, time_of(event), text_of(event, "who"),
	text_of(event, "lock"), text_of(event, "token"), text_of(event, "code")};
}

static void
begin_span(story *s, const char *what, json_t *event)
{
	GROW(s->spans, s->nspans);
	s->spans[s->nspans++] = (span) {what, text_of(event, "who"), text_of(event, "why"), time_of(event)};
}

static void
end_span(story *s, const char *what, json_t *event)
{
	for (int i = s->nspans - 1; i >= 0; i--)
		if (s->spans[i].end == 0 && strcmp(s->spans[i].what, what) == 0 &&
			(strcmp(what, "stop") || strcmp(s->spans[i].who, text_of(event, "who")) == 0))
			s->spans[i].end = time_of(event);
}

static void
add_moment(story *s, json_t *event)
{
	GROW(s->moments, s->nmoments);
	s->moments[s->nmoments++] = (moment) {text_of(event, "what"), text_of(event, "why"),
	json_integer_value(json_object_get(event, "n")), time_of(event)};
}

/* A holder that lost its lock learns of it when it is fenced. */
static void
note_fence(story *s, json_t *event)
{
	for (int i = s->nholds - 1; i >= 0; i--)
		if (strcmp(s->holds[i].who, text_of(event, "who")) == 0 && s->holds[i].knows == 0)
		{
			s->holds[i].knows = time_of(event);
			break;
		}
	add_mark(s, MARK_FENCE, event);
}

static void
read_write(story *s, json_t *event, bool present)
{
	const char *code = text_of(event, "code");

	if (strcmp(text_of(event, "phase"), "ok") == 0)
		add_mark(s, present ? MARK_PRESENT : MARK_ACCEPTED, event);
	else if (strcmp(code, "LF001") == 0)
		add_mark(s, MARK_REFUSED, event);
	else if (strcmp(text_of(event, "phase"), "no") == 0)
		add_mark(s, MARK_ENDED, event);
}

static void
drop_all(story *s, int64_t t)
{
	for (int i = 0; i < s->nholds; i++)
		if (s->holds[i].end == 0)
			end_hold(&s->holds[i], t, true);
}

static void
read_network(story *s, json_t *event)
{
	const char *what = text_of(event, "what");

	if (strcmp(what, "cut") == 0)
		begin_span(s, "cut", event);
	else if (strcmp(what, "heal") == 0)
		end_span(s, "cut", event);
	else if (strcmp(what, "stop") == 0)
		begin_span(s, "stop", event);
	else if (strcmp(what, "continue") == 0)
		end_span(s, "stop", event);
	else if (strcmp(what, "destroy") == 0)
		begin_span(s, "sealed", event);
	else if (strcmp(what, "epoch") == 0)
		end_span(s, "sealed", event);
	if (strcmp(what, "start") == 0 || strcmp(what, "kill") == 0 || strcmp(what, "restore") == 0 ||
		strcmp(what, "sealed") == 0 || strcmp(what, "epoch") == 0)
		add_moment(s, event);
}

static void
read_event(story *s, json_t *event)
{
	const char *what = text_of(event, "what");

	if (is(event, "acquire", "ok"))
		add_hold(s, event);
	else if (is(event, "acquire", "no") && strcmp(text_of(event, "code"), "sealed") == 0)
		add_mark(s, MARK_DENIED, event);
	else if (is(event, "release", "ok"))
		end_hold(open_hold(s, text_of(event, "lock")), time_of(event), false);
	else if (is(event, "drop", "ok"))
		drop_all(s, time_of(event));
	else if (strcmp(what, "write") == 0 || strcmp(what, "present") == 0)
		read_write(s, event, *what == 'p');
	else if (strcmp(what, "fence") == 0)
		note_fence(s, event);
	else
		read_network(s, event);
}

static int
compare_times(const void *a, const void *b)
{
	int64_t		x = time_of(*(json_t *const *) a);
	int64_t		y = time_of(*(json_t *const *) b);

	return x < y ? -1 : x > y;
}

/* Writers of one file overtake each other by a little. */
static json_t **
sorted(json_t *events, size_t n)
{
	json_t	  **list = malloc(sizeof *list * (n + 1));

	for (size_t i = 0; i < n; i++)
		list[i] = json_array_get(events, i);
	qsort(list, n, sizeof *list, compare_times);
	return list;
}

void
story_build(story *s, json_t *events)
{
	size_t		n = json_array_size(events);
	json_t	  **list = sorted(events, n);

	memset(s, 0, sizeof *s);
	for (size_t i = 0; i < n; i++)
		read_event(s, list[i]);
	if (n > 0)
	{
		s->first = time_of(list[0]);
		s->last = time_of(list[n - 1]);
	}
	for (int i = 0; i < s->nholds; i++)
		if (s->holds[i].end == 0)
			s->holds[i].end = s->last;
	for (int i = 0; i < s->nspans; i++)
		if (s->spans[i].end == 0)
			s->spans[i].end = s->last;
	free(list);
}

void
story_free(story *s)
{
	free(s->holds);
	free(s->marks);
	free(s->spans);
	free(s->moments);
}
