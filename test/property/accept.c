/*
 * accept.c
 *		What was accepted is logged.
 *
 * The log row belongs to the same (sub)transaction as the write, so it lives
 * and dies with it, and the server's own WAL says when it was committed.
 * Whether this program ever learned of the commit does not matter.
 */
#include "property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Remember it as well, for what will be known once COMMIT is confirmed. */
static void
remember_acceptance(Worker *w, const Write *write)
{
	Txn		   *txn = &w->txn;
	int			limit = (int) (sizeof(txn->accepted) / sizeof(txn->accepted[0]));
	Acceptance *a;

	if (fences[write->kind].resource == NULL || txn->naccepted == limit)
		return;
	a = &txn->accepted[txn->naccepted++];
	a->kind = fences[write->kind].slots;
	a->resource = write->resource;
	a->token = write->token;
	a->depth = txn->depth;
}

/* Log one accepted write, or an accepted present(). */
bool
log_acceptance(Worker *w, const Write *write, const char *resource)
{
	PGresult   *result;

	w->may = 0;
	result = attempt(w, "INSERT INTO accepted VALUES ('%s', %lld, '%s %s %s', %d, %lld, '%s')",
					 resource, (long long) write->token, fences[write->kind].name,
					 carrier_names[write->carrier], verb_names[write->verb],
					 w->id, (long long) ++w->seq, isolation_names[w->txn.isolation]);
	if (result == NULL)
		return false;
	PQclear(result);
	w->stats->accepted++;
	remember_acceptance(w, write);
	return true;
}

/* The stored token is the accepted one. */
static void
check_stored_token(Worker *w, const Write *write, const char *stored)
{
	char		message[TEXT_LEN];

	if (!w->opt->guarded || write->verb == VERB_DELETE || strtoll(stored, NULL, 10) == write->token)
		return;
	w->stats->misstored++;
	snprintf(message, sizeof(message), "row carries token %s after a write with %lld",
			 stored, (long long) write->token);
	note_failure(w, "00000", message, true);
}

/* A write that had to be refused was not. */
static void
complain_of_acceptance(Worker *w, const Write *write)
{
	if (w->opt->guarded)
		note_failure(w, "00000", write->carrier == CARRY_NOTHING ?
					 "a write without a token was accepted" :
					 "a write with two different tokens was accepted", true);
}

/*
 * Log what a statement wrote, by its rows (line, life, token or NULL).  Where
 * each row is its own resource, each is logged, by its incarnation; else one
 * row stands for all, and none means that no trigger had anything to decide,
 * except on a constant fence, which decides for the statement.
 */
bool
log_rows(Worker *w, const Write *write, PGresult *result)
{
	const FenceInfo *fence = &fences[write->kind];
	int			nrows = PQntuples(result);
	bool		ok = true;
	int			i;

	if (write->carrier == CARRY_NOTHING || write->carrier == CARRY_CONFLICT)
	{
		if (nrows > 0 || write->kind == FENCE_JOB)
			complain_of_acceptance(w, write);
		PQclear(result);
		return true;
	}

	for (i = 0; i < nrows; i++)
		if (!PQgetisnull(result, i, 2))
			check_stored_token(w, write, PQgetvalue(result, i, 2));

	if (fence->resource != NULL)
	{
		if (nrows > 0 || write->kind == FENCE_JOB)
			ok = log_acceptance(w, write, resource_name(write->kind, write->resource));
	}
	else
		for (i = 0; ok && i < nrows; i++)
		{
			char		resource[TEXT_LEN];

			/* a new row may go without a token; then nothing was decided */
			if (w->opt->guarded && PQgetisnull(result, i, 2))
				continue;
			snprintf(resource, sizeof(resource), "%s:%d/%s/%s", fence->name, write->resource,
					 PQgetvalue(result, i, 0), PQgetvalue(result, i, 1));
			ok = log_acceptance(w, write, resource);
		}
	PQclear(result);
	return ok;
}

/* COMMIT was confirmed: these marks must survive whatever comes. */
void
confirm_acceptances(Worker *w)
{
	int			i;

	for (i = 0; i < w->txn.naccepted; i++)
	{
		const Acceptance *a = &w->txn.accepted[i];
		_Atomic Token *highest = &w->shm->grants[a->kind][a->resource].acknowledged;
		Token		seen = atomic_load(highest);

		while (seen < a->token && !atomic_compare_exchange_weak(highest, &seen, a->token))
			;
	}
}

/* Forget those inside savepoints deeper than the given depth. */
void
forget_acceptances(Worker *w, int depth)
{
	Txn		   *txn = &w->txn;

	while (txn->naccepted > 0 && txn->accepted[txn->naccepted - 1].depth > depth)
		txn->naccepted--;
}

/* After RELEASE: what was inside the savepoint is now outside. */
void
keep_acceptances(Worker *w)
{
	int			i;

	for (i = 0; i < w->txn.naccepted; i++)
		if (w->txn.accepted[i].depth > w->txn.depth)
			w->txn.accepted[i].depth = w->txn.depth;
}
