/*
 * search.c
 *	  Decides whether one lock's operations can be put in an order.
 *
 * The model is an exclusive lock and a fenced register.  The lock grants only
 * while it is free, and each grant's token is higher than the last one's.
 * The register keeps the mark: it accepts a write whose token was granted and is
 * not below the mark, raises the mark to it, and refuses only what is below.
 * Where the row counts its writes, accepted writes happen in that order.  A
 * validator, where one was asked, lets only the present holder write.
 *
 * The search places operations one after another, each within its interval, and
 * goes back where that fails.  What keeps it short, also on a bad history:
 *
 *	- an operation that changes nothing is placed at once, with no alternative;
 *	- writes whose end is unknown, and holds that lapse, come last;
 *	- a state reached before with the same operations placed, and a subset of
 *	  the unknown writes used, is not entered again.
 *
 * "The same operations" is a 128-bit Zobrist hash.  A collision could reject a
 * good history and never accept a bad one.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

#define MAX_STATES 20000000
#define MAX_UNKNOWN 64
#define LARGE_STACK ((size_t) 512 << 20)	/* address space; touched as needed */

typedef struct hash128
{
	uint64_t	a;
	uint64_t	b;
} hash128;

typedef struct memo_entry
{
	hash128		key;
	uint64_t	used;			/* unknown writes, as a set */
	bool		taken;
} memo_entry;

typedef struct state
{
	int			holder;			/* index of the acquire, or -1 */
	int64_t		last;			/* highest token granted */
	int64_t		mark;
	int			nth;			/* how many counted writes are placed */
	uint64_t	used;
	hash128		placed;
} state;

typedef struct search
{
	const op   *ops;
	int			nops;
	int		   *next;			/* list of unplaced operations; nops is its head */
	int		   *prev;
	hash128    *zobrist;
	int		   *counted;		/* accepted writes with a counter, by counter */
	int			ncounted;
	int		   *idle;			/* operations placed at once, in order */
	int			nidle;
	int			nleft;			/* operations that must still be placed */
	int			fewest;			/* least nleft reached, */
	bool		overdue;		/* by one that had to come next there, */
	char	   *reason;			/* and why it went no further there */
	size_t		reason_size;
	memo_entry *memo;
	size_t		memo_size;
	size_t		memo_used;
	bool		gave_up;
	bool		found;
} search;

static uint64_t
next_random(uint64_t *x)
{
	uint64_t	z = (*x += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void
unlink_op(search *s, int i)
{
	s->next[s->prev[i]] = s->next[i];
	s->prev[s->next[i]] = s->prev[i];
}

static void
relink_op(search *s, int i)
{
	s->next[s->prev[i]] = i;
	s->prev[s->next[i]] = i;
}

static hash128
state_key(const state *st)
{
	uint64_t	x = (uint64_t) st->mark * 31 + (uint64_t) st->holder * 7 + st->last;
	hash128		key = st->placed;

	key.a ^= next_random(&x);
	key.b ^= next_random(&x);
	return key;
}

static memo_entry *
memo_slot(memo_entry *memo, size_t size, hash128 key, uint64_t used, bool *dominated)
{
	size_t		i = key.a & (size - 1);

	*dominated = false;
	for (; memo[i].taken; i = (i + 1) & (size - 1))
	{
		if (memo[i].key.a == key.a && memo[i].key.b == key.b &&
			(memo[i].used & ~used) == 0)
		{
			*dominated = true;
			break;
		}
	}
	return &memo[i];
}

static void
memo_grow(search *s)
{
	size_t		size = s->memo_size ? s->memo_size * 2 : 4096;
	memo_entry *memo = calloc(size, sizeof *memo);
	bool		ignored;

	for (size_t i = 0; i < s->memo_size; i++)
		if (s->memo[i].taken)
			*memo_slot(memo, size, s->memo[i].key, 0, &ignored) = s->memo[i];
	free(s->memo);
	s->memo = memo;
	s->memo_size = size;
}

/* True if the state, or a better one, was entered before; remembers it if not. */
static bool
seen_before(search *s, const state *st)
{
	bool		dominated;
	memo_entry *slot;

	if (s->memo_used * 2 >= s->memo_size)
		memo_grow(s);
	slot = memo_slot(s->memo, s->memo_size, state_key(st), st->used, &dominated);
	if (dominated)
		return true;
	*slot = (memo_entry) {state_key(st), st->used, true};
	if (++s->memo_used > MAX_STATES)
		s->gave_up = true;
	return false;
}

/* The operations that may come next, and the moment by which one must. */
static int64_t
first_deadline(const search *s)
{
	int64_t		deadline = NEVER;

	for (int i = s->next[s->nops]; i != s->nops && s->ops[i].call <= deadline; i = s->next[i])
		if (s->ops[i].ret < deadline)
			deadline = s->ops[i].ret;
	return deadline;
}

/* Is the hold under this token the last one granted, and not released? */
static bool
is_held(const search *s, const state *st, int64_t token)
{
	return st->holder >= 0 && s->ops[st->holder].token == token;
}

static const char *
why_no_write(const search *s, const state *st, int i)
{
	const op   *o = &s->ops[i];

	if (o->token > st->last)
		return "accepted under a token not granted by then";
	if (o->token < st->mark)
		return "accepted although its token is below the mark";
	if (o->validated && !is_held(s, st, o->token))
		return "let through by the validator although its hold was over";
	if (o->n >= 0 && s->counted[st->nth] != i)
		return "accepted out of the order the row counted";
	return NULL;
}

/* NULL if operation i can come next, else why not. */
static const char *
why_not_next(const search *s, const state *st, int i, int64_t deadline)
{
	const op   *o = &s->ops[i];

	switch (o->kind)
	{
		case OP_ACQUIRE:
			if (o->token <= st->last)
				return "granted with a token not above the last one";
			if (st->holder >= 0 && s->ops[st->holder].lapse > deadline)
				return "granted while another still held the lock";
			return NULL;
		case OP_RELEASE:
			return is_held(s, st, o->token) ? NULL : "released a lock it did not hold";
		case OP_REFUSED:
			return o->token < st->mark ? NULL : "refused although its token is not below the mark";
		case OP_DENIED:
			if (is_held(s, st, o->token) && s->ops[st->holder].lapse > deadline)
				return "refused by the validator although it held the lock";
			return NULL;
		case OP_MAYBE_WRITE:
			return o->token > st->mark && o->token <= st->last ? NULL : "without effect";
		case OP_WRITE:
			return why_no_write(s, st, i);
	}
	return "of no known kind";
}

static bool
changes_nothing(const state *st, const op *o)
{
	return o->kind == OP_REFUSED || o->kind == OP_DENIED || (o->kind == OP_WRITE && o->token == st->mark);
}

static state
state_after(const search *s, const state *st, int i, int unknown_bit)
{
	const op   *o = &s->ops[i];
	state		after = *st;

	if (o->kind == OP_ACQUIRE)
	{
		after.holder = i;
		after.last = o->token;
	}
	else if (o->kind == OP_RELEASE)
		after.holder = -1;
	else if (o->kind != OP_REFUSED && o->kind != OP_DENIED)
		after.mark = o->token;
	if (o->kind == OP_WRITE && o->n >= 0)
		after.nth++;
	if (o->kind == OP_MAYBE_WRITE)
		after.used |= UINT64_C(1) << unknown_bit;
	else
	{
		after.placed.a ^= s->zobrist[i].a;
		after.placed.b ^= s->zobrist[i].b;
	}
	return after;
}

/*
 * Keeps the reason of the place where the search got furthest, and there that of
 * the operation which had to come next: without it, others could still wait.
 */
static void
note_reason(search *s, const state *st, int i, const char *why, bool overdue)
{
	const op   *o = &s->ops[i];
	static const char *const names[] = {
		"acquire", "release", "write", "refused write", "denied write", "write"
	};

	if (o->kind == OP_MAYBE_WRITE || s->nleft > s->fewest ||
		(s->nleft == s->fewest && (s->overdue || !overdue)))
		return;
	s->fewest = s->nleft;
	s->overdue = overdue;
	snprintf(s->reason, s->reason_size,
			 "%s %s of %s, token %" PRId64 ", at %.6f s: %s (last granted %" PRId64
			 ", held by %s, mark %" PRId64 ")",
			 names[o->kind], o->id, o->who, o->token, o->call / 1e6, why, st->last,
			 st->holder < 0 ? "none" : s->ops[st->holder].who, st->mark);
}

static bool place_rest(search *s, const state *st);

static bool
place(search *s, const state *st, int i, int unknown_bit)
{
	state		after = state_after(s, st, i, unknown_bit);
	int			must = s->ops[i].kind != OP_MAYBE_WRITE;
	bool		done;

	unlink_op(s, i);
	s->nleft -= must;
	done = place_rest(s, &after);
	s->nleft += must;
	relink_op(s, i);
	return done;
}

/* Places, without recursion, every next operation that changes nothing. */
static void
place_idle(search *s, state *st)
{
	bool		again = true;

	while (again)
	{
		int64_t		deadline = first_deadline(s);

		again = false;
		for (int i = s->next[s->nops]; i != s->nops && s->ops[i].call <= deadline; i = s->next[i])
		{
			if (!changes_nothing(st, &s->ops[i]) || why_not_next(s, st, i, deadline))
				continue;
			*st = state_after(s, st, i, 0);
			unlink_op(s, i);
			s->nleft--;
			s->idle[s->nidle++] = i;
			again = true;
			break;
		}
	}
}

static bool
try_each(search *s, const state *st, bool unknown)
{
	int64_t		deadline = first_deadline(s);
	int			bit = 0;

	for (int i = s->next[s->nops]; i != s->nops && s->ops[i].call <= deadline; i = s->next[i])
	{
		const char *why;

		if ((s->ops[i].kind == OP_MAYBE_WRITE) != unknown)
			continue;
		if (unknown)
			bit = (int) s->ops[i].n;
		why = why_not_next(s, st, i, deadline);
		if (why)
			note_reason(s, st, i, why, s->ops[i].ret == deadline);
		else if (place(s, st, i, bit))
			return true;
		if (s->gave_up)
			return false;
	}
	return false;
}

static bool
place_rest(search *s, const state *before)
{
	state		st = *before;
	int			nidle = s->nidle;
	bool		done;

	if (s->gave_up || seen_before(s, &st))
		return false;
	place_idle(s, &st);
	done = s->nleft == 0 || try_each(s, &st, false) || try_each(s, &st, true);
	while (s->nidle > nidle)
	{
		relink_op(s, s->idle[--s->nidle]);
		s->nleft++;
	}
	return done;
}

static const op *sorted_ops;

static int
compare_counters(const void *a, const void *b)
{
	int64_t		x = sorted_ops[*(const int *) a].n;
	int64_t		y = sorted_ops[*(const int *) b].n;

	return x < y ? -1 : x > y;
}

/* False if the row counted the same write twice. */
static bool
sort_counted(search *s)
{
	for (int i = 0; i < s->nops; i++)
		if (s->ops[i].kind == OP_WRITE && s->ops[i].n >= 0)
			s->counted[s->ncounted++] = i;
	sorted_ops = s->ops;
	qsort(s->counted, s->ncounted, sizeof(int), compare_counters);
	for (int i = 1; i < s->ncounted; i++)
		if (s->ops[s->counted[i]].n == s->ops[s->counted[i - 1]].n)
			return false;
	return true;
}

static void
set_up(search *s, const lock_history *lock, op *ops)
{
	uint64_t	seed = 1;
	int			unknown = 0;

	memcpy(ops, lock->ops, sizeof(op) * lock->nops);
	s->ops = ops;
	s->nops = lock->nops;
	s->next = malloc(sizeof(int) * (s->nops + 1));
	s->prev = malloc(sizeof(int) * (s->nops + 1));
	s->counted = malloc(sizeof(int) * (s->nops + 1));
	s->idle = malloc(sizeof(int) * (s->nops + 1));
	s->zobrist = malloc(sizeof(hash128) * (s->nops + 1));
	for (int i = 0; i <= s->nops; i++)
	{
		s->next[i] = i == s->nops ? 0 : i + 1;
		s->prev[i] = i == 0 ? s->nops : i - 1;
		s->zobrist[i].a = next_random(&seed);
		s->zobrist[i].b = next_random(&seed);
	}
	for (int i = 0; i < s->nops; i++)
	{
		if (ops[i].kind == OP_MAYBE_WRITE)
			ops[i].n = unknown++;	/* its bit in the set of used ones */
		else
			s->nleft++;
	}
	s->fewest = s->nleft + 1;
	s->gave_up = unknown > MAX_UNKNOWN;
}

/* The search recurses once for every operation that changes something. */
static void *
run_search(void *arg)
{
	search	   *s = arg;
	state		start = {.holder = -1};

	s->found = place_rest(s, &start);
	return NULL;
}

static void
run_on_large_stack(search *s)
{
	pthread_attr_t attr;
	pthread_t	thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, LARGE_STACK);
	if (pthread_create(&thread, &attr, run_search, s) == 0)
		pthread_join(thread, NULL);
	else
		s->gave_up = true;
	pthread_attr_destroy(&attr);
}

verdict
search_lock(const lock_history *lock, char *reason, size_t size)
{
	search		s = {.reason = reason, .reason_size = size};
	op		   *ops = malloc(sizeof(op) * (lock->nops + 1));
	verdict		result;

	snprintf(reason, size, "no order fits");
	set_up(&s, lock, ops);
	if (!sort_counted(&s))
	{
		snprintf(reason, size, "two accepted writes were counted as the same one");
		result = HISTORY_BAD;
	}
	else
	{
		run_on_large_stack(&s);
		result = s.found ? HISTORY_GOOD : s.gave_up ? HISTORY_UNDECIDED : HISTORY_BAD;
	}
	if (result == HISTORY_UNDECIDED)
		snprintf(reason, size, "gave up after %zu states", s.memo_used);
	free(s.next);
	free(s.prev);
	free(s.counted);
	free(s.idle);
	free(s.zobrist);
	free(s.memo);
	free(ops);
	return result;
}
