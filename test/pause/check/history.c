/*
 * history.c
 *	  From a file of events to operations grouped by lock.
 *
 * A hold ends by a release or because its lease ran out.  The latter is
 * recorded nowhere, since the holder may be dead: it is derived from the last renewal that
 * was answered.  A lease cannot run out before that renewal's SEND time plus
 * its time to live, whatever the service's clock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/token.h"
#include "history.h"
#include "strmap.h"

typedef struct raw_op
{
	const char *what;
	const char *lock;
	const char *who;
	const char *id;
	const char *session;
	int64_t		call;
	int64_t		ret;
	int64_t		token;
	int64_t		n;
	bool		validated;
	enum
	{
		OPEN, DONE, NOTHING, STALE, DENIED, UNKNOWN
	}			end;
} raw_op;

typedef struct builder
{
	history    *h;
	strmap		ids;
	strmap		sessions;
	strmap		locks;
	strmap		tokens;
	raw_op	   *raw;
	int			nraw;
	int			maxraw;
	int64_t    *lapse;			/* by session */
	int			nlapse;
} builder;

static const char *
text_of(json_t *event, const char *key)
{
	return json_string_value(json_object_get(event, key));
}

static int64_t
number_of(json_t *event, const char *key, int64_t otherwise)
{
	json_t	   *v = json_object_get(event, key);

	return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

json_t *
history_read(const char *path, char *problem, size_t size)
{
	FILE	   *f = fopen(path, "r");
	json_t	   *events = json_array();
	char	   *line = NULL;
	size_t		size_of_line = 0;
	int			lineno = 0;

	*problem = '\0';
	if (f == NULL)
		snprintf(problem, size, "cannot open %s", path);
	while (f && !*problem && getline(&line, &size_of_line, f) > 0)
	{
		json_error_t err;
		json_t	   *event = json_loads(line, 0, &err);

		lineno++;
		if (!json_is_object(event))
			snprintf(problem, size, "line %d is not a JSON object", lineno);
		json_array_append_new(events, event);
	}
	free(line);
	if (f)
		fclose(f);
	return events;
}

static void
fail(builder *b, const char *what, const char *detail)
{
	if (!b->h->problem[0])
		snprintf(b->h->problem, sizeof b->h->problem, "%s: %s", what, detail);
}

static bool
is_operation(const char *what)
{
	return strcmp(what, "acquire") == 0 || strcmp(what, "release") == 0 ||
		strcmp(what, "write") == 0 || strcmp(what, "present") == 0 ||
		strcmp(what, "drop") == 0;
}

static raw_op *
raw_at(builder *b, const char *id, bool *fresh)
{
	int		   *at = strmap_at(&b->ids, id);

	*fresh = *at < 0;
	if (*fresh)
	{
		if (b->nraw == b->maxraw)
		{
			b->maxraw = b->maxraw ? b->maxraw * 2 : 1024;
			b->raw = realloc(b->raw, b->maxraw * sizeof *b->raw);
		}
		*at = b->nraw++;
		memset(&b->raw[*at], 0, sizeof *b->raw);
	}
	return &b->raw[*at];
}

/* A later answer to the same request (a retry under its id) replaces an earlier one. */
static void
note_end(raw_op *raw, const char *phase, json_t *event)
{
	const char *code = text_of(event, "code");

	if (strcmp(phase, "ok") == 0)
		raw->end = DONE;
	else if (strcmp(phase, "unknown") == 0)
		raw->end = UNKNOWN;
	else if (code && strcmp(code, "LF001") == 0)
		raw->end = STALE;
	else if (code && strcmp(code, "LF007") == 0)
		raw->end = DENIED;
	else
		raw->end = NOTHING;
	raw->ret = raw->end == UNKNOWN ? NEVER : number_of(event, "t", 0);
}

static void
read_operation(builder *b, json_t *event, const char *what, const char *phase)
{
	const char *id = text_of(event, "id");
	const char *token = text_of(event, "token");
	const char *lock = text_of(event, "lock");
	bool		fresh;
	raw_op	   *raw;

	if (id == NULL)
	{
		fail(b, "an operation without id", what);
		return;
	}
	raw = raw_at(b, id, &fresh);
	if (fresh)
	{
		raw->what = what;
		raw->call = number_of(event, "t", 0);
		raw->ret = NEVER;
		raw->n = -1;
		raw->who = text_of(event, "who");
		raw->id = id;
		if (strcmp(phase, "call") != 0)
			fail(b, "an answer without a call", id);
	}
	if (lock)
		raw->lock = lock;
	if (token && !token_parse(token, &raw->token))
		fail(b, "a token that is no number", token);
	if (text_of(event, "session"))
		raw->session = text_of(event, "session");
	raw->n = number_of(event, "n", raw->n);
	raw->validated = number_of(event, "validated", raw->validated);
	if (strcmp(phase, "call") != 0)
		note_end(raw, phase, event);
}

static void
read_lease(builder *b, json_t *event)
{
	const char *session = text_of(event, "session");
	int64_t		lapse = number_of(event, "sent", 0) + number_of(event, "ttl", 0);
	int		   *at;

	if (session == NULL)
		return;
	at = strmap_at(&b->sessions, session);
	if (*at < 0)
	{
		*at = b->nlapse++;
		b->lapse = realloc(b->lapse, b->nlapse * sizeof *b->lapse);
		b->lapse[*at] = 0;
	}
	if (lapse > b->lapse[*at])
		b->lapse[*at] = lapse;
}

static void
read_event(builder *b, json_t *event)
{
	const char *what = text_of(event, "what");
	const char *phase = text_of(event, "phase");

	if (what == NULL || phase == NULL)
		fail(b, "an event without what or phase", what ? what : "?");
	else if (is_operation(what))
		read_operation(b, event, what, phase);
	else if ((strcmp(what, "session") == 0 || strcmp(what, "renew") == 0) &&
			 strcmp(phase, "ok") == 0)
		read_lease(b, event);
}

static lock_history *
lock_at(builder *b, const char *name)
{
	history    *h = b->h;
	int		   *at = strmap_at(&b->locks, name);

	if (*at < 0)
	{
		*at = h->nlocks++;
		h->locks = realloc(h->locks, h->nlocks * sizeof *h->locks);
		h->locks[*at] = (lock_history) {strdup(name), NULL, 0};
	}
	return &h->locks[*at];
}

static void
add_op(builder *b, const raw_op *raw, op_kind kind)
{
	lock_history *lock = lock_at(b, raw->lock);
	op		   *new;

	if ((lock->nops & (lock->nops - 1)) == 0)	/* 0 and powers of two */
		lock->ops = realloc(lock->ops, (lock->nops ? lock->nops * 2 : 1) * sizeof *lock->ops);
	new = &lock->ops[lock->nops++];
	*new = (op) {kind, raw->call, raw->ret, raw->token, raw->n, raw->validated, NEVER};
	new->who = strdup(raw->who ? raw->who : "?");
	new->id = strdup(raw->id);
	b->h->nops++;
	if (kind == OP_ACQUIRE && raw->session)
	{
		int			s = *strmap_at(&b->sessions, raw->session);

		if (s >= 0)
			new->lapse = b->lapse[s];
	}
}

/* No two grants carry one token, whatever the lock: a revision is one txn. */
static void
check_token_is_new(builder *b, const raw_op *raw)
{
	char		text[64];
	int		   *at;

	snprintf(text, sizeof text, "%" PRId64, raw->token);
	at = strmap_at(&b->tokens, text);
	if (*at >= 0)
		fail(b, "a token was issued twice", text);
	*at = 1;
}

static void
add_raw(builder *b, const raw_op *raw)
{
	bool		write = strcmp(raw->what, "write") == 0 || strcmp(raw->what, "present") == 0;

	if (raw->lock == NULL)
		fail(b, "an operation without lock", raw->id);
	else if (write && raw->end == DONE)
		add_op(b, raw, OP_WRITE);
	else if (write && raw->end == STALE)
		add_op(b, raw, OP_REFUSED);
	else if (write && raw->end == DENIED)
		add_op(b, raw, OP_DENIED);
	else if (write && (raw->end == UNKNOWN || raw->end == OPEN))
		add_op(b, raw, OP_MAYBE_WRITE);
	else if (strcmp(raw->what, "acquire") == 0 && raw->end == DONE)
	{
		check_token_is_new(b, raw);
		add_op(b, raw, OP_ACQUIRE);
	}
	else if (strcmp(raw->what, "release") == 0 && raw->end == DONE)
		add_op(b, raw, OP_RELEASE);
	else
		b->h->ndropped++;
}

/*
 * A release without a known answer, and a drop by an administrator, end a hold at
 * some moment after they were called: they only bring its earliest end forward.
 */
static void
bring_lapse_forward(builder *b, const raw_op *raw)
{
	bool		drop = strcmp(raw->what, "drop") == 0 && raw->end != NOTHING;
	bool		release = strcmp(raw->what, "release") == 0 &&
		(raw->end == UNKNOWN || raw->end == OPEN);

	for (int l = 0; (drop || release) && l < b->h->nlocks; l++)
	{
		lock_history *lock = &b->h->locks[l];

		if (raw->lock && strcmp(raw->lock, "*") != 0 && strcmp(raw->lock, lock->name) != 0)
			continue;
		for (int i = 0; i < lock->nops; i++)
		{
			op		   *o = &lock->ops[i];

			if (o->kind == OP_ACQUIRE && o->lapse > raw->call &&
				(drop ? o->call < raw->ret : o->token == raw->token))
				o->lapse = raw->call;
		}
	}
}

static int
compare_calls(const void *a, const void *b)
{
	const op   *x = a;
	const op   *y = b;

	return x->call < y->call ? -1 : x->call > y->call;
}

void
history_build(history *h, json_t *events)
{
	builder		b = {.h = h};
	size_t		i;
	json_t	   *event;

	memset(h, 0, sizeof *h);
	json_array_foreach(events, i, event)
		read_event(&b, event);
	for (int r = 0; r < b.nraw; r++)
		add_raw(&b, &b.raw[r]);
	for (int r = 0; r < b.nraw; r++)
		bring_lapse_forward(&b, &b.raw[r]);
	for (int l = 0; l < h->nlocks; l++)
		qsort(h->locks[l].ops, h->locks[l].nops, sizeof(op), compare_calls);
	strmap_free(&b.ids);
	strmap_free(&b.sessions);
	strmap_free(&b.locks);
	strmap_free(&b.tokens);
	free(b.raw);
	free(b.lapse);
}

void
history_free(history *h)
{
	for (int l = 0; l < h->nlocks; l++)
	{
		for (int i = 0; i < h->locks[l].nops; i++)
		{
			free(h->locks[l].ops[i].who);
			free(h->locks[l].ops[i].id);
		}
		free(h->locks[l].ops);
		free(h->locks[l].name);
	}
	free(h->locks);
	memset(h, 0, sizeof *h);
}
