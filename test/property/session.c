/*
 * session.c
 *		Statements, and what may go wrong with them.
 *
 * Every failure is counted by SQLSTATE and judged: a refusal that was due, a
 * conflict over a data row that plain PostgreSQL would report too, a kill that
 * this program sent.  Anything else fails the run.
 */
#include "property.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For statements of the program itself: they work, or the run is over. */
PGresult *
must(PGconn *conn, const char *fmt,...)
{
	char		sql[SQL_LEN];
	va_list		args;
	PGresult   *result;

	va_start(args, fmt);
	vsnprintf(sql, sizeof(sql), fmt, args);
	va_end(args);

	result = PQexec(conn, sql);
	if (PQresultStatus(result) != PGRES_COMMAND_OK &&
		PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		fprintf(stderr, "property: %sin: %s\n", PQerrorMessage(conn), sql);
		exit(2);
	}
	return result;
}

/* Transactions that this worker had prepared when its backend was killed. */
static void
finish_orphans(Worker *w)
{
	PGresult   *result = PQexec(w->conn, "SELECT gid FROM pg_catalog.pg_prepared_xacts "
								"WHERE database = pg_catalog.current_database()");
	char		mine[32];
	int			i;

	snprintf(mine, sizeof(mine), "worker %d,", w->id);
	for (i = 0; i < PQntuples(result); i++)
	{
		const char *gid = PQgetvalue(result, i, 0);
		char		sql[128];

		if (strncmp(gid, mine, strlen(mine)) != 0)
			continue;
		snprintf(sql, sizeof(sql), "%s PREPARED '%s'",
				 chance(w, 50) ? "COMMIT" : "ROLLBACK", gid);
		PQclear(PQexec(w->conn, sql));
	}
	PQclear(result);
}

/*
 * Some sessions take few heavyweight locks a transaction before they turn to
 * tuple locks, some none, so that each way meets itself and the other.
 */
static void
set_up_session(Worker *w)
{
	PQclear(PQexec(w->conn, "SET statement_timeout = '60s'"));
	if (w->id % 3 < 2)
		PQclear(PQexec(w->conn, w->id % 3 ? "SET lockfence.max_resource_locks = 2" :
					   "SET lockfence.max_resource_locks = 0"));
	finish_orphans(w);
}

/*
 * The workers are the application, really so and not by SET ROLE: who may end
 * whom is judged by the role that connected.  The administrator is as given.
 */
static PGconn *
open_connection(const Worker *w)
{
	const char *const keywords[] = {"dbname", "user", NULL};
	const char *const values[] = {
		w->opt->dsn, w->id == MAX_WORKERS ? NULL : "property_app", NULL
	};

	return PQconnectdbParams(keywords, values, 1);
}

/* Notices, and what a killed backend says last, do not matter. */
static void
ignore_notice(void *arg, const char *message)
{
	(void) arg;
	(void) message;
}

/* Connect, or connect again after a kill or a crash; the server may be down. */
void
session_connect(Worker *w)
{
	int			tries;

	while (atomic_load(&w->shm->crashing) && w->id != MAX_WORKERS)
		usleep(10000);
	for (tries = 0; tries < 600; tries++)
	{
		if (w->conn)
			PQfinish(w->conn);
		w->conn = open_connection(w);
		PQsetNoticeProcessor(w->conn, ignore_notice, NULL);
		if (PQstatus(w->conn) == CONNECTION_OK)
		{
			set_up_session(w);
			if (PQstatus(w->conn) == CONNECTION_OK)
				break;
		}
		usleep(50000);
	}
	if (tries == 600)
	{
		fprintf(stderr, "property: worker %d: %s", w->id, PQerrorMessage(w->conn));
		atomic_store(&w->shm->broken, true);
		_exit(2);
	}
	w->lost = false;
	atomic_store(&w->shm->pid[w->id], PQbackendPID(w->conn));
}

/* Count a failure; keep the first of its kind for the report. */
void
note_failure(Worker *w, const char *state, const char *message, bool unexpected)
{
	int			i;

	for (i = 0; i < MAX_ERRORS; i++)
	{
		ErrorCount *e = &w->stats->errors[i];

		if (e->n == 0)
		{
			snprintf(e->state, sizeof(e->state), "%s", state);
			snprintf(e->doing, sizeof(e->doing), "%s", w->doing);
			snprintf(e->message, sizeof(e->message), "%.*s", (int) strcspn(message, "\n"), message);
			e->unexpected = unexpected;
		}
		else if (strcmp(e->state, state) != 0 || e->unexpected != unexpected)
			continue;
		e->n++;
		return;
	}
}

/* 40001: over data rows above READ COMMITTED, or between SERIALIZABLE readers. */
static bool
may_not_serialize(const Worker *w, const char *message)
{
	if (strstr(message, "moved to another partition") != NULL)
		return (w->may & MAY_CLASH) != 0;
	if (w->txn.isolation == READ_COMMITTED)
		return false;
	if (strstr(message, "read/write dependencies") != NULL)
		return w->txn.isolation == SERIALIZABLE;
	return (w->may & MAY_CLASH) != 0;
}

/*
 * A deadlock, found by the server or by the fence, which then cancels the
 * lower token's statement.
 */
static bool
is_deadlock(const char *state, const char *message)
{
	return strcmp(state, "40P01") == 0 ||
		(strcmp(state, "57014") == 0 && strstr(message, "user request") != NULL);
}

/* Is this failure one that a right guard may cause here? */
static bool
may_fail_so(const Worker *w, const PGresult *result, const char *state, const char *message)
{
	const char *schema = PQresultErrorField(result, PG_DIAG_SCHEMA_NAME);

	if ((w->may & MUST_MISS) && strncmp(state, "LF", 2) == 0)
		return strcmp(state, "LF002") == 0;
	if (strcmp(state, "LF001") == 0)
		return true;
	if (strcmp(state, "22023") == 0)
		return (w->may & MAY_BE_HIGHER) != 0;
	if (strcmp(state, "LF006") == 0)
		return (w->may & MAY_CONFLICT) != 0;
	if (strcmp(state, "40001") == 0)
		return may_not_serialize(w, message);
	if (strcmp(state, "40P01") == 0)
		return !w->opt->documented;
	if (strcmp(state, "23505") == 0)
		return (w->may & MAY_DUPLICATE) && schema && strcmp(schema, "public") == 0;
	if (strcmp(state, "57P01") == 0)
		return w->opt->chaos || w->opt->preempt;
	if (strcmp(state, "57014") == 0)
		return w->opt->preempt || (is_deadlock(state, message) && !w->opt->documented);
	return false;
}

/* Who had to give way?  It should be the lower token, as far as fences go. */
static void
count_victim(Worker *w, const char *state, const char *message)
{
	bool		stale = service_is_stale(w);

	if (is_deadlock(state, message))
		w->stats->deadlocks++;
	if (strcmp(state, "40P01") == 0)
	{
		w->stats->deadlock_victims++;
		w->stats->current_victims += !stale;
	}
	else if (strcmp(state, "57014") == 0)
	{
		w->stats->stale_ended += stale;
		w->stats->current_ended += !stale;
	}
}

/* Count a failed statement, and note whether the connection went with it. */
static void
judge_failure(Worker *w, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	/* without an SQLSTATE, the connection broke before the server could say why */
	w->lost = state == NULL || PQstatus(w->conn) != CONNECTION_OK;
	if (state == NULL)
	{
		note_failure(w, "08006", PQerrorMessage(w->conn),
					 !(w->opt->chaos || w->opt->preempt || w->opt->crash));
		return;
	}
	count_victim(w, state, message ? message : "");
	note_failure(w, state, message ? message : "",
				 !may_fail_so(w, result, state, message ? message : "") &&
				 !(w->lost && w->opt->crash && strncmp(state, "57P", 3) == 0));
}

/* Run a statement of the transaction; NULL: it failed, and the transaction too. */
PGresult *
attempt(Worker *w, const char *fmt,...)
{
	char		sql[SQL_LEN];
	va_list		args;
	PGresult   *result;
	ExecStatusType status;

	va_start(args, fmt);
	vsnprintf(sql, sizeof(sql), fmt, args);
	va_end(args);

	result = PQexec(w->conn, sql);
	status = PQresultStatus(result);
	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
		return result;
	judge_failure(w, result);
	w->txn.failed = true;
	PQclear(result);
	return NULL;
}

/* COPY ... FROM STDIN of the given lines. */
bool
attempt_copy(Worker *w, const char *command, const char *rows)
{
	PGresult   *result = PQexec(w->conn, command);
	bool		ok;

	if (PQresultStatus(result) == PGRES_COPY_IN)
	{
		PQclear(result);
		PQputCopyData(w->conn, rows, (int) strlen(rows));
		PQputCopyEnd(w->conn, NULL);
		result = PQgetResult(w->conn);
		PQclear(PQgetResult(w->conn));
	}
	ok = PQresultStatus(result) == PGRES_COMMAND_OK;
	if (!ok)
	{
		judge_failure(w, result);
		w->txn.failed = true;
	}
	PQclear(result);
	return ok;
}
