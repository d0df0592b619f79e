/*
 * db.c
 *	  The writer's statements, and what it records of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../holder/present.h"
#include "writer.h"

bool
db_connect(writer *w)
{
	if (w->conn)
		PQfinish(w->conn);
	w->conn = PQconnectdb(w->dsn);
	if (PQstatus(w->conn) == CONNECTION_OK)
		return true;
	fprintf(stderr, "%s: %s", w->history.who, PQerrorMessage(w->conn));
	return false;
}

bool
db_run(writer *w, const char *sql)
{
	PGresult   *res = PQexec(w->conn, sql);
	bool		good = PQresultStatus(res) == PGRES_COMMAND_OK || PQresultStatus(res) == PGRES_TUPLES_OK;

	if (!good)
		fprintf(stderr, "%s: %s: %s", w->history.who, sql, PQerrorMessage(w->conn));
	PQclear(res);
	return good;
}

static void
token_text(const writer *w, char text[32])
{
	snprintf(text, 32, "%" PRId64, w->token);
}

static void
next_id(writer *w, char id[96])
{
	static int	n;

	snprintf(id, 96, "%s-w%d", w->history.who, ++n);
}

/* An error without SQLSTATE is a connection that broke: at a commit, its fate is unknown. */
static fate
fate_of(const char *state, bool committing)
{
	if (strcmp(state, "00000") == 0)
		return ACCEPTED;
	if (strcmp(state, "LF001") == 0)
		return REFUSED_STALE;
	if (committing && strncmp(state, "08", 2) == 0)
		return NOBODY_KNOWS;
	return NOT_DONE;
}

static const char *
phase_of(fate f)
{
	return f == ACCEPTED ? "ok" : f == NOBODY_KNOWS ? "unknown" : "no";
}

/* Outside a transaction: presents and commits, a holder's first act. */
fate
db_present(writer *w)
{
	char		id[96];
	char		token[32];
	char		state[6];
	int64_t		start;
	fate		f;

	next_id(w, id);
	token_text(w, token);
	start = record(&w->history, "present", "call", "{s:s, s:s, s:s}", "id", id,
				   "lock", w->resource, "token", token);
	f = fate_of(lf_present(w->conn, w->resource, w->token, state), true);
	record(&w->history, "present", phase_of(f), "{s:s, s:s, s:s, s:s, s:I}", "id", id,
		   "lock", w->resource, "token", token, "code", state,
		   "took", (json_int_t) (clock_us() - start));
	return f;
}

/* Inside a transaction: it holds the resource against a successor until it ends. */
bool
db_present_open(writer *w)
{
	char		state[6];

	return strcmp(lf_present(w->conn, w->resource, w->token, state), "00000") == 0;
}

bool
db_read(writer *w)
{
	const char *values[1] = {w->resource};
	char		sql[200];
	PGresult   *res;
	bool		good;

	if (w->table)
		return db_run(w, "SELECT 1");
	snprintf(sql, sizeof sql, "SELECT n FROM %s WHERE name = $1", w->account);
	res = PQexecParams(w->conn, sql, 1, NULL, values, NULL, NULL, 0);
	good = PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1;
	PQclear(res);
	return good;
}

static PGresult *
send_write(writer *w, const char *token)
{
	const char *own[2] = {w->resource, token};
	const char *other[4] = {w->table, w->row, w->change, token};
	char		sql[200];

	snprintf(sql, sizeof sql, "UPDATE %s SET n = n + 1, fence = $2::bigint WHERE name = $1"
			 " RETURNING n", w->account);
	if (w->table == NULL)
		return PQexecParams(w->conn, sql, 2, NULL, own, NULL, NULL, 0);
	return PQexecParams(w->conn, "SELECT lockfence.guarded_update($1::text::regclass, $2::jsonb,"
						" $3::jsonb, $4::bigint)", 4, NULL, other, NULL, NULL, 0);
}

static void
state_of(PGresult *res, char state[6])
{
	ExecStatusType status = PQresultStatus(res);
	const char *said = PQresultErrorField(res, PG_DIAG_SQLSTATE);

	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		said = "00000";
	snprintf(state, 6, "%s", said ? said : "08006");
}

/* Commits what send_write() did; a failed statement is rolled back instead. */
static void
end_transaction(writer *w, char state[6])
{
	bool		commit = strcmp(state, "00000") == 0;
	PGresult   *res = PQexec(w->conn, commit ? "COMMIT" : "ROLLBACK");

	if (commit)
		state_of(res, state);
	PQclear(res);
}

/* One write of one row.  in_transaction: one is open already, and it is ended. */
fate
db_write(writer *w, bool in_transaction)
{
	char		id[96];
	char		token[32];
	char		state[6];
	PGresult   *res;
	json_int_t	n = -1;
	fate		f;

	next_id(w, id);
	token_text(w, token);
	record(&w->history, "write", "call", "{s:s, s:s, s:s}", "id", id, "lock", w->resource,
		   "token", token);
	res = send_write(w, token);
	state_of(res, state);
	if (strcmp(state, "00000") != 0)
		fprintf(stderr, "%s: %s", w->history.who, PQresultErrorMessage(res));
	else if (PQntuples(res) == 1)
		n = strtoll(PQgetvalue(res, 0, 0), NULL, 10);
	if (strcmp(state, "00000") == 0 && n <= 0)
	{
		fprintf(stderr, "%s: there is no such row\n", w->history.who);
		strcpy(state, "02000");
	}
	PQclear(res);
	f = fate_of(state, !in_transaction);
	if (in_transaction)
	{
		end_transaction(w, state);
		f = fate_of(state, f == ACCEPTED);
	}
	/* only the kit's own row counts its writes, and only the kit's own fence has a validator */
	record(&w->history, "write", phase_of(f), w->table ? "{s:s, s:s, s:s, s:s}" :
		   w->validated ? "{s:s, s:s, s:s, s:s, s:I, s:i}" : "{s:s, s:s, s:s, s:s, s:I}",
		   "id", id, "lock", w->resource, "token", token, "code", state, "n", n, "validated", 1);
	return f;
}
