/*
 * generate.c
 *	  Makes a good history of a given length, for the checker's own tests.
 *
 * Plays a perfect lock service and a perfect fence: clients take turns on a few
 * locks, write, are now and then paused past their lease and refused, lose an
 * answer, or die holding the lock.  Operations of different clients overlap.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "generate.h"

#define LOCKS 3
#define TTL INT64_C(6000000)

typedef struct world
{
	json_t	   *events;
	int64_t		now[LOCKS];		/* each lock has a time line of its own */
	int64_t		counter[LOCKS];
	int64_t		stale[LOCKS];	/* a token whose holder does not know it lost */
	int64_t		revision;
	int			ops;
	uint64_t	seed;
} world;

static int
roll(world *w, int sides)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int) ((w->seed >> 33) % (unsigned) sides);
}

static void
emit(world *w, int64_t t, const char *what, const char *phase, int id, int lock, int64_t token)
{
	char		text[32];
	char		ident[32];
	char		name[32];
	json_t	   *event;

	snprintf(text, sizeof text, "%" PRId64, token);
	snprintf(ident, sizeof ident, "op-%d", id);
	snprintf(name, sizeof name, "lock-%d", lock);
	event = json_pack("{s:I s:s s:s s:s s:s s:s}", "t", (json_int_t) t, "who", "client",
					  "what", what, "phase", phase, "id", ident, "lock", name);
	if (token)
		json_object_set_new(event, "token", json_string(text));
	json_array_append_new(w->events, event);
}

static void
set_last(world *w, const char *key, json_t *value)
{
	json_object_set_new(json_array_get(w->events, json_array_size(w->events) - 1), key, value);
}

static void
lease(world *w, int lock, int64_t token, int64_t sent)
{
	char		session[32];

	snprintf(session, sizeof session, "s%" PRId64, token);
	set_last(w, "session", json_string(session));
	json_array_append_new(w->events,
						  json_pack("{s:I s:s s:s s:s s:s s:I s:I}", "t", (json_int_t) w->now[lock],
									"who", "client", "what", "renew", "phase", "ok",
									"session", session, "sent", (json_int_t) sent,
									"ttl", (json_int_t) TTL));
}

static void
write_once(world *w, int lock, int64_t token)
{
	int			id = w->ops++;
	int64_t	   *now = &w->now[lock];
	int			fate = roll(w, 100);

	emit(w, *now += 100, "write", "call", id, lock, token);
	if (fate == 0 && *now % 5 == 0)
		return;					/* died: its fate is unknown */
	*now += 1000;
	emit(w, *now, "write", "ok", id, lock, token);
	set_last(w, "n", json_integer(++w->counter[lock]));
}

/* A client that was paused past its lease wakes up and writes; a validator may say no before the fence does. */
static void
write_stale(world *w, int lock)
{
	int			id = w->ops++;
	int64_t		t = w->now[lock];
	bool		asked = roll(w, 4) == 0;

	emit(w, t + 50, "write", "call", id, lock, w->stale[lock]);
	emit(w, t + 2500, "write", "no", id, lock, w->stale[lock]);
	set_last(w, "code", json_string(asked ? "LF007" : "LF001"));
	if (asked)
		set_last(w, "validated", json_integer(1));
	w->stale[lock] = 0;
}

static void
end_hold(world *w, int lock, int64_t token, int64_t sent)
{
	int			fate = roll(w, 20);
	int			id = w->ops++;

	if (fate == 0)				/* paused or dead: the lease runs out */
	{
		w->now[lock] = sent + TTL + 1000;
		w->stale[lock] = token;
		w->ops--;
		return;
	}
	emit(w, w->now[lock] += 50, "release", "call", id, lock, token);
	w->now[lock] += 400;
	if (fate != 1)				/* 1: the answer is lost */
		emit(w, w->now[lock], "release", "ok", id, lock, token);
}

static void
one_grant(world *w, int lock)
{
	int64_t		token = ++w->revision + (INT64_C(1) << 48);
	int			id = w->ops++;
	int64_t		sent;
	int			writes = 1 + roll(w, 4);

	emit(w, w->now[lock] - roll(w, 900), "acquire", "call", id, lock, 0);
	sent = w->now[lock];
	emit(w, w->now[lock] += 700, "acquire", "ok", id, lock, token);
	lease(w, lock, token, sent);
	for (int i = 0; i < writes; i++)
	{
		write_once(w, lock, token);
		if (i == 0 && w->stale[lock])
			write_stale(w, lock);
	}
	end_hold(w, lock, token, sent);
}

json_t *
generate_history(int operations, unsigned seed)
{
	world		w = {.events = json_array(), .seed = seed};

	for (int l = 0; l < LOCKS; l++)
		w.now[l] = 1000000;
	while (w.ops < operations)
		one_grant(&w, roll(&w, LOCKS));
	return w.events;
}
