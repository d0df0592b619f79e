/*
 * paths.c
 *		What to write next, and how the token gets there.
 */
#include "property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
describe(Worker *w, const Write *x)
{
	snprintf(w->doing, sizeof(w->doing), "%s %s %s, resource %d, token %lld%s, %s",
			 fences[x->kind].name, carrier_names[x->carrier], verb_names[x->verb],
			 x->resource, (long long) x->token, w->txn.mixed ? ", mixed" : "",
			 isolation_names[w->txn.isolation]);
}

/* Present the token for the resource by its name; accepting that is an event too. */
static bool
present_for(Worker *w, const Write *x, int resource)
{
	Write		present = {x->kind, CARRY_RESOURCE, VERB_PRESENT, resource, 0, x->token};
	PGresult   *result;

	w->may = w->txn.mixed || x->carrier == CARRY_CONFLICT ? MAY_CONFLICT : 0;
	result = attempt(w, "SELECT lockfence.present('%s', %lld)",
					 resource_name(x->kind, resource), (long long) x->token);
	PQclear(result);
	return result != NULL &&
		log_acceptance(w, &present, resource_name(x->kind, resource));
}

/* Have the fence issue the token to go with; that is an event too. */
static bool
issue_for(Worker *w, Write *x)
{
	Write		issued = {x->kind, CARRY_RESOURCE, VERB_ISSUE, x->resource, 0, 0};
	PGresult   *result;

	describe(w, &issued);
	w->txn.touched = true;
	w->txn.npresenting = 0;
	service_present(w, x->kind, x->resource, service_before_issue(w, x->kind, x->resource));
	w->may = 0;
	result = attempt(w, "SELECT lockfence.issue('%s')", resource_name(x->kind, x->resource));
	if (result == NULL)
		return false;
	issued.token = x->token = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	service_issued(w, x->kind, x->resource, x->token);
	return log_acceptance(w, &issued, resource_name(x->kind, x->resource));
}

/* Is the token to be issued?  Where the transaction has none of the resource's yet. */
static bool
wants_issue(Worker *w, const Write *x)
{
	return w->opt->guarded && strcmp(w->opt->guard, "lockfence") == 0 &&
		x->carrier == CARRY_RESOURCE && x->verb != VERB_MOVE && !w->txn.mixed &&
		w->txn.tokens[fences[x->kind].slots][x->resource] == 0 && chance(w, 15);
}

static bool
present_ambient(Worker *w, const Write *x)
{
	PGresult   *result;

	if (w->txn.ambient == x->token)
		return true;
	w->may = w->txn.mixed ? MAY_CONFLICT : 0;
	result = attempt(w, "SELECT lockfence.present(%lld)", (long long) x->token);
	PQclear(result);
	if (result != NULL)
		w->txn.ambient = x->token;
	return result != NULL;
}

/* Get the token to where the fence finds it, unless the statement brings it. */
static bool
carry_token(Worker *w, const Write *x, int from)
{
	switch (x->carrier)
	{
		case CARRY_AMBIENT:
			return present_ambient(w, x);
		case CARRY_RESOURCE:
		case CARRY_CONFLICT:
			return (x->verb != VERB_MOVE || present_for(w, x, from)) &&
				present_for(w, x, x->resource);
		default:
			return true;
	}
}

/*
 * The token to go with.  An orderly transaction stays with one per resource, or
 * with one for all; a mixed one is of a new mind every time.  Returns 0 if the
 * row cannot move, since its two resources have different tokens already.
 */
static Token
choose_token(Worker *w, const Write *x, int from)
{
	Token	   *tokens = w->txn.tokens[fences[x->kind].slots];
	Token		token;

	if (w->txn.mixed)
		return service_choose(w, x->kind, x->resource);
	if (w->txn.use_ambient)
	{
		if (w->txn.only_token == 0)
			w->txn.only_token = service_choose(w, x->kind, x->resource);
		return w->txn.only_token;
	}

	token = tokens[x->resource];
	if (token == 0)
		token = service_choose(w, x->kind, x->resource);
	if (x->verb == VERB_MOVE)
	{
		if (tokens[from] != 0 && tokens[from] != token)
			return 0;
		tokens[from] = token;
	}
	return tokens[x->resource] = token;
}

/* Does the carrier go with what the transaction has done so far? */
static bool
carrier_fits(Worker *w, Carrier carrier)
{
	const Txn  *txn = &w->txn;

	switch (carrier)
	{
		case CARRY_NOTHING:
			return !txn->touched && chance(w, 30);
		case CARRY_CONFLICT:
			return chance(w, 10);
		case CARRY_RESOURCE:
			return txn->mixed || !txn->use_ambient;
		case CARRY_AMBIENT:
			return txn->mixed || txn->use_ambient;
		case CARRY_COLUMN:
			/* an ambient token of before would contradict it */
			return txn->mixed || txn->ambient == 0 || txn->use_ambient;
		default:
			return true;
	}
}

static FenceKind
choose_fence(Worker *w)
{
	FenceKind	kind;

	do
		kind = (FenceKind) pick(w, N_FENCES);
	while (!(w->opt->fence_mask & (1u << kind)));
	return kind;
}

/* A way to write to this fence; false: none was found. */
static bool
choose_way(Worker *w, Write *x)
{
	int			tries;

	for (tries = 0; tries < 200; tries++)
	{
		x->verb = chance(w, 10) ? VERB_MOVE : (Verb) pick(w, N_VERBS);
		x->carrier = (Carrier) pick(w, N_CARRIERS);
		if (x->verb == VERB_TRUNCATE && !chance(w, 5))
			continue;
		if (fence_allows(w->opt, x->kind, x->carrier, x->verb) && carrier_fits(w, x->carrier))
			return true;
	}
	return false;
}

static void
carry_and_write(Worker *w, const Write *x, int from)
{
	describe(w, x);
	w->txn.touched = true;
	w->txn.npresenting = 0;
	if (x->verb == VERB_MOVE)
		service_present(w, x->kind, from, x->token);
	service_present(w, x->kind, x->resource, x->token);
	if (carry_token(w, x, from))
	{
		maybe_pause(w, 15);
		execute_write(w, x, from);
	}
}

/* One write of a random kind. */
void
write_something(Worker *w)
{
	Write		x = {0};
	int			from;

	x.kind = choose_fence(w);
	x.resource = pick(w, fence_resources(w->opt, x.kind));
	from = pick(w, fence_resources(w->opt, x.kind));
	if (!choose_way(w, &x) || (x.verb == VERB_MOVE && from == x.resource))
		return;
	x.line = x.verb == VERB_INSERT && chance(w, 60) ? fresh_line(w) : pick(w, SHARED_LINES);
	if (wants_issue(w, &x))
	{
		if (!issue_for(w, &x))
			return;
	}
	else if (x.carrier != CARRY_NOTHING)
		x.token = choose_token(w, &x, from);
	if (x.token != 0 || x.carrier == CARRY_NOTHING)
		carry_and_write(w, &x, from);
}

/*
 * The order that the documentation teaches: present() first.  With one resource
 * and a row of one's own nothing but the fence is left to wait for, so this
 * must never meet a deadlock, nor fail to serialize over a data row.
 */
void
write_as_documented(Worker *w)
{
	static const Verb verbs[] = {
		VERB_PRESENT, VERB_UPDATE, VERB_UPSERT, VERB_UPSERT, VERB_DELETE, VERB_INSERT, VERB_COPY, VERB_MERGE
	};
	Write		x = {0};

	do
	{
		x.kind = choose_fence(w);
		x.verb = verbs[pick(w, 8)];
		x.carrier = CARRY_RESOURCE;
	} while (!fence_allows(w->opt, x.kind, x.carrier, x.verb));
	x.resource = pick(w, fence_resources(w->opt, x.kind));
	x.line = x.verb == VERB_INSERT ? fresh_line(w) : SHARED_LINES + w->id;
	if (wants_issue(w, &x))
	{
		if (!issue_for(w, &x))
			return;
	}
	else
		x.token = service_choose(w, x.kind, x.resource);
	carry_and_write(w, &x, x.resource);
}
