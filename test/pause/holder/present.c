/*
 * present.c
 *	  A holder's first act: present the token to PostgreSQL and commit.
 */
#include <inttypes.h>
#include <stdio.h>

#include "present.h"

const char *
lf_present(PGconn *conn, const char *resource, int64_t token, char sqlstate[6])
{
	char		text[32];
	const char *values[2] = {resource, text};
	PGresult   *res;
	const char *state;

	snprintf(text, sizeof text, "%" PRId64, token);
	/* one statement outside a transaction commits by itself */
	res = PQexecParams(conn, "SELECT lockfence.present($1::text, $2::bigint)",
					   2, NULL, values, NULL, NULL, 0);
	state = PQresultStatus(res) == PGRES_TUPLES_OK ? "00000" :
		PQresultErrorField(res, PG_DIAG_SQLSTATE);
	snprintf(sqlstate, 6, "%s", state ? state : "08006");	/* no answer: the connection */
	PQclear(res);
	return sqlstate;
}
