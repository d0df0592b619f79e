/*
 * txn.c
 *		One random transaction.
 */
#include "property.h"

#include <stdio.h>
#include <string.h>

/* A statement of transaction control; true if it worked. */
static bool
control(Worker *w, const char *doing, const char *sql)
{
	PGresult   *result;

	w->may = 0;
	snprintf(w->doing, sizeof(w->doing), "%s, %s", doing, isolation_names[w->txn.isolation]);
	result = attempt(w, "%s", sql);
	PQclear(result);
	return result != NULL;
}

static bool
begin(Worker *w)
{
	static const char *const levels[] = {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"};
	Txn		   *txn = &w->txn;
	char		sql[TEXT_LEN];

	memset(txn, 0, sizeof(*txn));
	txn->isolation = w->opt->isolation == N_ISOLATIONS ? (Isolation) pick(w, N_ISOLATIONS) :
		(Isolation) w->opt->isolation;
	txn->mixed = !w->opt->documented && chance(w, 15);
	txn->use_ambient = chance(w, 40);
	w->stats->transactions++;

	snprintf(sql, sizeof(sql), "BEGIN ISOLATION LEVEL %s%s", levels[txn->isolation],
			 chance(w, w->opt->crash ? 100 : 25) ? "; SET LOCAL synchronous_commit = off" : "");
	if (!control(w, "begin", sql))
		return false;

	/* above READ COMMITTED, let the snapshot be older than the marks */
	if (txn->isolation != READ_COMMITTED && chance(w, 50))
	{
		if (!control(w, "snapshot", "SELECT 1"))
			return false;
		maybe_pause(w, 60);
	}
	return true;
}

static void
set_savepoint(Worker *w)
{
	Txn		   *txn = &w->txn;
	char		sql[64];

	snprintf(sql, sizeof(sql), "SAVEPOINT s%d", txn->depth);
	if (txn->depth == MAX_DEPTH || !control(w, "savepoint", sql))
		return;
	txn->ambient_at[txn->depth++] = txn->ambient;
	w->stats->savepoints++;
}

static void
release_savepoint(Worker *w)
{
	Txn		   *txn = &w->txn;
	char		sql[64];

	if (txn->depth == 0)
		return;
	snprintf(sql, sizeof(sql), "RELEASE SAVEPOINT s%d", txn->depth - 1);
	if (!control(w, "release", sql))
		return;
	txn->depth--;
	keep_acceptances(w);
}

/* Back to the innermost savepoint, or to an outer one; it stays in place. */
static void
undo_to_savepoint(Worker *w)
{
	Txn		   *txn = &w->txn;
	int			to;
	char		sql[64];

	if (txn->depth == 0)
		return;
	to = chance(w, 70) ? txn->depth - 1 : pick(w, txn->depth);
	snprintf(sql, sizeof(sql), "ROLLBACK TO SAVEPOINT s%d", to);
	txn->failed = false;
	if (!control(w, "rollback to", sql))
		return;
	txn->depth = to + 1;
	txn->ambient = txn->ambient_at[to];
	forget_acceptances(w, to);
	w->stats->undone++;
	maybe_pause(w, 50);			/* in which the resource may go to another */
}

static void
step(Worker *w)
{
	int			what = pick(w, 100);

	if (what < 68)
		write_something(w);
	else if (what < 81)
		set_savepoint(w);
	else if (what < 89)
		release_savepoint(w);
	else if (what < 96)
		undo_to_savepoint(w);
	else
		maybe_pause(w, 100);
}

/* Two phases; between them no session holds the transaction. */
static void
prepare_and_finish(Worker *w)
{
	char		gid[64];
	char		sql[128];
	bool		commit = chance(w, 75);

	snprintf(gid, sizeof(gid), "worker %d,%lld", w->id, (long long) ++w->seq);
	snprintf(sql, sizeof(sql), "PREPARE TRANSACTION '%s'", gid);
	if (!control(w, "prepare", sql))
		return;
	w->stats->prepared++;
	maybe_pause(w, 50);
	snprintf(sql, sizeof(sql), "%s PREPARED '%s'", commit ? "COMMIT" : "ROLLBACK", gid);
	if (!control(w, "finish prepared", sql))
		return;
	if (commit)
	{
		confirm_acceptances(w);
		w->stats->commits++;
	}
	else
		w->stats->rollbacks++;
}

static void
finish(Worker *w)
{
	int			how = pick(w, 100);

	maybe_pause(w, 20);
	if (how < 12)
	{
		if (control(w, "rollback", "ROLLBACK"))
			w->stats->rollbacks++;
	}
	else if (how < 22 && w->opt->prepare)
		prepare_and_finish(w);
	else if (control(w, "commit", "COMMIT"))
	{
		confirm_acceptances(w);
		w->stats->commits++;
	}
}

/* After a failure: undo to a savepoint if there is one, else give up. */
static bool
recover(Worker *w)
{
	if (!w->lost && w->txn.depth > 0)
		undo_to_savepoint(w);
	return !w->txn.failed && !w->lost;
}

void
run_transaction(Worker *w)
{
	int			steps = w->opt->documented ? 1 : 1 + pick(w, 7);

	if (begin(w))
		while (steps-- > 0)
		{
			if (w->opt->documented)
				write_as_documented(w);
			else
				step(w);
			if (w->txn.failed && !recover(w))
				break;
		}
	if (!w->txn.failed && !w->lost)
		finish(w);
	if (w->txn.failed && !w->lost)
	{
		PQclear(PQexec(w->conn, "ROLLBACK"));
		w->stats->rollbacks++;
		w->lost = PQstatus(w->conn) != CONNECTION_OK;
	}
	if (w->lost)
	{
		w->stats->reconnects++;
		session_connect(w);
	}
}
