/*
 * chaos.c
 *		Kills, administrators, crashes.
 */
#include "property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* End the backend of some worker, whatever it is doing. */
static void
kill_somebody(Worker *w)
{
	int			pid = atomic_load(&w->shm->pid[pick(w, w->opt->workers)]);
	PGresult   *result = attempt(w, "SELECT pg_catalog.pg_terminate_backend(%d)", pid);

	if (result && strcmp(PQgetvalue(result, 0, 0), "t") == 0)
		atomic_fetch_add(&w->shm->kills, 1);
	PQclear(result);
}

/*
 * Write a mark as an administrator does.  The call is logged like a write: a
 * raised mark counts as accepted, and after a reset the count starts anew.
 * Raising a mark to what it is already changes nothing and holds nothing.
 */
static bool
set_mark(Worker *w, const Write *x)
{
	const char *resource = resource_name(x->kind, x->resource);
	PGresult   *result;
	bool		changed;

	w->txn.npresenting = 0;
	service_present(w, x->kind, x->resource, x->token);
	PQclear(attempt(w, "BEGIN"));
	w->may = x->verb == VERB_RAISE ? MAY_BE_HIGHER : 0;
	result = attempt(w, "SELECT lockfence.%s_mark('%s', %lld, 'property test')",
					 verb_names[x->verb], resource, (long long) x->token);
	changed = result && strtoll(PQgetvalue(result, 0, 0), NULL, 10) != x->token;
	PQclear(result);
	if (changed && log_acceptance(w, x, resource))
	{
		maybe_pause(w, 50);
		PQclear(attempt(w, "COMMIT"));
		return true;
	}
	PQclear(PQexec(w->conn, "ROLLBACK"));
	return false;
}

static void
raise_some_mark(Worker *w)
{
	Write		x = {FENCE_BATCH, CARRY_NOTHING, VERB_RAISE, 0, 0, 0};

	x.resource = pick(w, w->opt->resources);
	x.token = service_grant(w->shm, x.kind, x.resource);
	if (set_mark(w, &x))
		atomic_fetch_add(&w->shm->raises, 1);
}

static void
reset_some_mark(Worker *w)
{
	Write		x = {RESET_FENCE, CARRY_NOTHING, VERB_RESET, 0, 0, 0};

	x.resource = pick(w, w->opt->resources);
	x.token = service_choose(w, x.kind, x.resource);
	if (set_mark(w, &x))
		atomic_fetch_add(&w->shm->resets, 1);
}

/* Fold marks into the floor, so that it has to answer for them. */
static void
prune_marks(Worker *w)
{
	PGresult   *result = attempt(w, "SELECT lockfence.prune('%d milliseconds')", pick(w, 2) * 500);

	if (result)
		atomic_fetch_add(&w->shm->prunes, strtol(PQgetvalue(result, 0, 0), NULL, 10));
	PQclear(result);
}

/* Note what had been acknowledged, once no session can acknowledge any more. */
static void
note_acknowledged(Shared *shm, int crash)
{
	int			kind;
	int			i;

	for (kind = 0; kind < N_FENCES; kind++)
		for (i = 0; i < MAX_RESOURCES; i++)
			shm->at_crash[crash][kind][i] = atomic_load(&shm->grants[kind][i].acknowledged);
}

/*
 * The server goes down without a word and comes back.  The workers are kept
 * out until the log says that this has happened: whatever was acknowledged
 * before must stand in the log before that, and in the marks.
 */
static void
crash_server(Worker *w)
{
	int			crash = (int) atomic_load(&w->shm->crashes);
	Write		x = {FENCE_BATCH, CARRY_NOTHING, VERB_CRASH, 0, 0, crash};

	atomic_store(&w->shm->crashing, true);
	if (system(w->opt->crash) != 0)
	{
		fprintf(stderr, "property: failed: %s\n", w->opt->crash);
		atomic_store(&w->shm->broken, true);
		_exit(2);
	}
	note_acknowledged(w->shm, crash);
	session_connect(w);
	atomic_fetch_add(&w->shm->behind, marks_behind(w->conn, w->shm, crash));
	w->txn.naccepted = 0;
	if (log_acceptance(w, &x, "crash"))
		atomic_fetch_add(&w->shm->crashes, 1);
	atomic_store(&w->shm->crashing, false);
}

/* One deed. */
static void
interfere(Worker *w)
{
	int			what = pick(w, 100);

	snprintf(w->doing, sizeof(w->doing), "administration");
	w->txn.failed = false;
	w->may = 0;
	if (what < 60)
		kill_somebody(w);
	else if (what < 78)
		raise_some_mark(w);
	else if (what < 88)
		reset_some_mark(w);
	else
		prune_marks(w);
}

/* How long until the next crash, in ms.  One of one comes before the middle. */
static long
time_to_crash(Worker *w)
{
	return w->opt->crashes > 1 ? 50 + pick(w, 1000) : w->opt->seconds * 400L;
}

void
run_chaos(Worker *w)
{
	int			left = w->opt->crash ? w->opt->crashes : 0;
	long		until_crash = time_to_crash(w);

	session_connect(w);
	while (!atomic_load(&w->shm->stop))
	{
		int			nap = 50 + pick(w, 200);

		usleep((useconds_t) nap * 1000);
		until_crash -= nap;
		if (left > 0 && until_crash < 0)
		{
			crash_server(w);
			left--;
			until_crash = time_to_crash(w);
		}
		if (w->opt->chaos)
			interfere(w);
		if (w->lost || PQstatus(w->conn) != CONNECTION_OK)
			session_connect(w);
	}
}
