/*
 * mutate.c
 *	  Breaks a good history in one way, so that the checker can be checked.
 *
 * Each mutant is one fault a lock service or a fence could have.  They work on
 * recorded events, so the history of any proof can be mutated, not only one
 * made for the purpose.
 */
#include <string.h>

#include "mutate.h"
#include "strmap.h"

static const char *
text_of(json_t *event, const char *key)
{
	const char *s = json_string_value(json_object_get(event, key));

	return s ? s : "";
}

static bool
is(json_t *event, const char *what, const char *phase)
{
	return strcmp(text_of(event, "what"), what) == 0 &&
		strcmp(text_of(event, "phase"), phase) == 0;
}

static bool
same(json_t *a, json_t *b, const char *key)
{
	return strcmp(text_of(a, key), text_of(b, key)) == 0;
}

static json_int_t
time_of(json_t *event)
{
	return json_integer_value(json_object_get(event, "t"));
}

/* The last event of this kind about the same operation or, by key, the same thing. */
static json_t *
find(json_t *events, const char *what, const char *phase, json_t *like, const char *key)
{
	json_t	   *found = NULL;
	json_t	   *event;
	size_t		i;

	json_array_foreach(events, i, event)
		if (is(event, what, phase) && same(event, like, key))
			found = event;
	return found;
}

/* The answered grant that follows this one on the same lock. */
static json_t *
next_grant(json_t *events, json_t *grant)
{
	json_t	   *best = NULL;
	json_t	   *event;
	size_t		i;

	json_array_foreach(events, i, event)
		if (is(event, "acquire", "ok") && same(event, grant, "lock") &&
			time_of(event) > time_of(grant) && (!best || time_of(event) < time_of(best)))
			best = event;
	return best;
}

/* The first lock that was granted twice.  One pass: histories are long. */
static bool
two_grants(json_t *events, json_t **first, json_t **second)
{
	strmap		grants = {0};
	json_t	   *event;
	size_t		i;

	*second = NULL;
	json_array_foreach(events, i, event)
	{
		int		   *at;

		if (!is(event, "acquire", "ok"))
			continue;
		at = strmap_at(&grants, text_of(event, "lock"));
		if (*at >= 0 && time_of(event) > time_of(json_array_get(events, *at)))
		{
			*first = json_array_get(events, *at);
			*second = event;
			break;
		}
		*at = (int) i;
	}
	strmap_free(&grants);
	return *second != NULL;
}

static void
set_token_everywhere(json_t *events, const char *lock, const char *from, const char *to)
{
	json_t	   *event;
	size_t		i;

	json_array_foreach(events, i, event)
		if (strcmp(text_of(event, "lock"), lock) == 0 && strcmp(text_of(event, "token"), from) == 0)
			json_object_set_new(event, "token", json_string(to));
}

/* Another holder is granted the lock right after the first grant. */
static bool
second_holder(json_t *events)
{
	json_t	   *first;
	json_t	   *second;
	json_t	   *call;
	json_int_t	t;

	if (!two_grants(events, &first, &second))
		return false;
	call = find(events, "acquire", "call", second, "id");
	t = time_of(first);
	json_object_set_new(call, "t", json_integer(t + 1));
	json_object_set_new(second, "t", json_integer(t + 2));
	return true;
}

static bool
swapped_tokens(json_t *events)
{
	json_t	   *first;
	json_t	   *second;
	char		a[64] = "";
	char		b[64] = "";

	if (!two_grants(events, &first, &second))
		return false;
	strncat(a, text_of(first, "token"), sizeof a - 1);
	strncat(b, text_of(second, "token"), sizeof b - 1);
	set_token_everywhere(events, text_of(first, "lock"), a, "swapping");
	set_token_everywhere(events, text_of(first, "lock"), b, a);
	set_token_everywhere(events, text_of(first, "lock"), "swapping", b);
	return true;
}

/* What PostgreSQL refused, it accepts. */
static bool
stale_write_accepted(json_t *events)
{
	json_t	   *event;
	size_t		i;

	json_array_foreach(events, i, event)
	{
		if (!is(event, "write", "no") || strcmp(text_of(event, "code"), "LF001") != 0)
			continue;
		json_object_set_new(event, "phase", json_string("ok"));
		return true;
	}
	return false;
}

/* What the validator kept out, it lets through. */
static bool
validator_overruled(json_t *events)
{
	json_t	   *event;
	size_t		i;

	json_array_foreach(events, i, event)
	{
		if (!is(event, "write", "no") || !json_object_get(event, "validated"))
			continue;
		json_object_set_new(event, "phase", json_string("ok"));
		return true;
	}
	return false;
}

/* The second grant carries the first one's token, and so do its writes. */
static bool
token_reused(json_t *events)
{
	json_t	   *first;
	json_t	   *second;
	char		b[64] = "";

	if (!two_grants(events, &first, &second))
		return false;
	strncat(b, text_of(second, "token"), sizeof b - 1);
	set_token_everywhere(events, text_of(first, "lock"), b, text_of(first, "token"));
	return true;
}

/* The grant that this release ended. */
static json_t *
grant_of(json_t *events, json_t *release)
{
	json_t	   *grant = find(events, "acquire", "ok", release, "token");

	return grant && same(grant, release, "lock") ? grant : NULL;
}

/* The service forgets a hold: it was not released, and its lease still ran. */
static bool
release_missing(json_t *events)
{
	json_t	   *release;
	size_t		i;

	json_array_foreach(events, i, release)
	{
		json_t	   *grant;
		json_t	   *next;
		char		id[128] = "";

		if (!is(release, "release", "ok") || !(grant = grant_of(events, release)) ||
			!(next = next_grant(events, grant)))
			continue;
		/* only where the successor came before the lease could run out */
		if (time_of(next) >= time_of(grant) + 1000000)
			continue;
		strncat(id, text_of(release, "id"), sizeof id - 1);
		for (size_t k = json_array_size(events); k-- > 0;)
			if (strcmp(text_of(json_array_get(events, k), "id"), id) == 0)
				json_array_remove(events, k);
		return true;
	}
	return false;
}

const mutant mutants[] = {
	{"second holder", second_holder},
	{"swapped tokens", swapped_tokens},
	{"stale write accepted", stale_write_accepted},
	{"validator overruled", validator_overruled},
	{"token reused", token_reused},
	{"release missing", release_missing},
};
const int	nmutants = sizeof mutants / sizeof *mutants;
