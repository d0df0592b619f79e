/*
 * service.c
 *		The pretend lock service, and chance.
 *
 * Like the real one it numbers its grants from one counter, so that the tokens
 * of a resource rise but have gaps.  Unlike it, it hands the lock to each
 * session that asks and tells no other: all other holders are zombies from then on.
 */
#include "property.h"

#include <time.h>

/* Above 2^53, so that a float anywhere on the way would show. */
#define SERVICE_EPOCH ((Token) 40 << 48)

/* splitmix64 */
uint64_t
random_next(uint64_t *state)
{
	uint64_t	z = (*state += 0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
	return z ^ (z >> 31);
}

/* A seed of its own for every process of a run. */
uint64_t
random_seed(uint64_t seed, int stream)
{
	uint64_t	state = seed + (uint64_t) stream * 0xD1342543DE82EF95;

	return random_next(&state);
}

bool
chance(Worker *w, int percent)
{
	return random_next(&w->rng) % 100 < (uint64_t) percent;
}

/* 0 .. n-1 */
int
pick(Worker *w, int n)
{
	return (int) (random_next(&w->rng) % (uint64_t) n);
}

/* The pause in which a lease lapses: up to 2 ms. */
void
maybe_pause(Worker *w, int percent)
{
	struct timespec pause = {0, 0};

	if (!chance(w, percent))
		return;
	pause.tv_nsec = pick(w, 2000) * 1000L;
	nanosleep(&pause, NULL);
}

/* A new grant of the resource's lock. */
Token
service_grant(Shared *shm, FenceKind kind, int resource)
{
	Grants	   *grants = &shm->grants[fences[kind].slots][resource];
	Token		token = SERVICE_EPOCH + atomic_fetch_add(&shm->revision, 1) + 1;
	unsigned	n = atomic_fetch_add(&grants->n, 1);

	atomic_store(&grants->recent[n % RECENT_GRANTS], token);
	return token;
}

/*
 * The token to go with: of a new grant, of the newest one (as its holder or as
 * a sibling of its holder), the one this worker had last, or one of the last
 * few.  The newest may be stale by the time it is presented; that is the point.
 */
Token
service_choose(Worker *w, FenceKind kind, int resource)
{
	FenceKind	slots = fences[kind].slots;
	Grants	   *grants = &w->shm->grants[slots][resource];
	unsigned	n = atomic_load(&grants->n);
	int			how = pick(w, 100);
	Token		token = 0;

	if (how < (fences[kind].single_use ? 50 : 8))
		token = service_grant(w->shm, kind, resource);
	else if (how < 80 && n > 0)
		token = atomic_load(&grants->recent[(n - 1) % RECENT_GRANTS]);
	else if (how < 90)
		token = w->held[slots][resource];
	else
		token = atomic_load(&grants->recent[pick(w, RECENT_GRANTS)]);

	if (token == 0)
		token = service_grant(w->shm, kind, resource);
	w->held[slots][resource] = token;
	return token;
}

/*
 * The fence is about to issue a token.  Its number is not known yet, but it is above all
 * that were presented, so a session that holds the resource by one of those may be ended
 * for it.
 */
Token
service_before_issue(Worker *w, FenceKind kind, int resource)
{
	Grants	   *grants = &w->shm->grants[fences[kind].slots][resource];
	unsigned	n = atomic_load(&grants->n);
	Token		newest = n > 0 ? atomic_load(&grants->recent[(n - 1) % RECENT_GRANTS]) : 0;
	Token		presented = atomic_load(&grants->presented);

	return (newest > presented ? newest : presented) + 1;
}

/* It has issued that one: the lock service goes on above it, and others may present it as well. */
void
service_issued(Worker *w, FenceKind kind, int resource, Token token)
{
	FenceKind	slots = fences[kind].slots;
	Grants	   *grants = &w->shm->grants[slots][resource];
	Token		seen = atomic_load(&w->shm->revision);

	while (seen < token - SERVICE_EPOCH &&
		   !atomic_compare_exchange_weak(&w->shm->revision, &seen, token - SERVICE_EPOCH))
		;
	atomic_store(&grants->recent[atomic_fetch_add(&grants->n, 1) % RECENT_GRANTS], token);
	w->held[slots][resource] = token;
	w->txn.tokens[slots][resource] = token;
}

/* A token is about to be presented for the resource. */
void
service_present(Worker *w, FenceKind kind, int resource, Token token)
{
	_Atomic Token *presented = &w->shm->grants[fences[kind].slots][resource].presented;
	Token		seen = atomic_load(presented);
	Acceptance *presenting = &w->txn.presenting[w->txn.npresenting++ % 2];

	while (seen < token && !atomic_compare_exchange_weak(presented, &seen, token))
		;
	presenting->kind = fences[kind].slots;
	presenting->resource = resource;
	presenting->token = token;
}

static bool
is_stale(const Worker *w, const Acceptance *a)
{
	return a->token < atomic_load(&w->shm->grants[a->kind][a->resource].presented);
}

/*
 * Does the transaction hold anything by a token that is not the highest?  If
 * not, no advance has a reason to end it.
 */
bool
service_is_stale(const Worker *w)
{
	int			i;

	for (i = 0; i < w->txn.naccepted; i++)
		if (is_stale(w, &w->txn.accepted[i]))
			return true;
	for (i = 0; i < w->txn.npresenting; i++)
		if (is_stale(w, &w->txn.presenting[i]))
			return true;
	return false;
}
