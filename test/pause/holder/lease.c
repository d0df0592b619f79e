/*
 * lease.c
 *	  PostgreSQL as the lock service, by lockfence_lease: a lease for each lock.
 *
 * The grant is the takeover: once it is committed, PostgreSQL refuses the holder
 * before.  A grant whose answer was lost is not found again, but lapses.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/clock.h"
#include "../common/token.h"
#include "private.h"

#define ASK_TIMEOUT_MS 10000

typedef struct lease_link
{
	PGconn	   *asking;
	PGconn	   *renewing;
	char		resource[1025];	/* with the token, protected by the holder's mutex */
	char		token[32];		/* empty: no lease */
} lease_link;

static PGconn *
connect_to(const char *dsn, long timeout_ms)
{
	char		options[64];
	const char *const keys[] = {"dbname", "options", "connect_timeout", NULL};
	const char *const values[] = {dsn, options, "10", NULL};

	snprintf(options, sizeof options, "-c statement_timeout=%ld", timeout_ms);
	return PQconnectdbParams(keys, values, 1);
}

static void *
lease_connect(const lf_options *options)
{
	lease_link *l = calloc(1, sizeof *l);

	l->asking = connect_to(options->lease_dsn, ASK_TIMEOUT_MS);
	l->renewing = connect_to(options->lease_dsn, options->ttl_s * 1000L / 3);
	return l;
}

static void
lease_close(lf_holder *h)
{
	lease_link *l = h->link;

	PQfinish(l->asking);
	PQfinish(l->renewing);
	free(l);
}

static void
note_message(lf_holder *h, const char *message)
{
	pthread_mutex_lock(&h->mutex);
	snprintf(h->message, sizeof h->message, "%s", message);
	pthread_mutex_unlock(&h->mutex);
}

/* Without an answer of the server, it is unknown whether it was done. */
static lf_result
result_of(PGconn *conn, PGresult *res)
{
	const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);

	if (PQresultStatus(res) == PGRES_TUPLES_OK)
		return LF_OK;
	if (state == NULL || PQstatus(conn) != CONNECTION_OK)
		return LF_UNKNOWN;
	return strcmp(state, "LF001") == 0 ? LF_GONE : strcmp(state, "LF005") == 0 ? LF_SEALED : LF_FAILED;
}

/* One statement, in a transaction of its own.  The caller clears *res. */
static lf_result
ask(lf_holder *h, PGconn *conn, const char *sql, int n, const char *const *values,
	PGresult **res, int64_t *sent)
{
	lf_result	result;

	*res = NULL;
	if (PQstatus(conn) != CONNECTION_OK)
		PQreset(conn);
	if (PQstatus(conn) != CONNECTION_OK)
	{
		note_message(h, PQerrorMessage(conn));
		return LF_FAILED;
	}
	*sent = clock_us();
	*res = PQexecParams(conn, sql, n, NULL, values, NULL, NULL, 0);
	result = result_of(conn, *res);
	if (result != LF_OK)
		note_message(h, PQerrorMessage(conn));
	return result;
}

/* Nothing is to be renewed before there is a lease. */
static lf_result
lease_open(lf_holder *h, long timeout_ms)
{
	lease_link *l = h->link;
	PGresult   *res;
	int64_t		sent;
	lf_result	result;

	(void) timeout_ms;
	result = ask(h, l->asking, "SELECT 1", 0, NULL, &res, &sent);
	PQclear(res);
	if (result == LF_OK)
		lf_lease_ends(h);
	return result;
}

static void
begin(lf_holder *h, const char *resource, const char *token, int64_t sent)
{
	lease_link *l = h->link;
	char		session[64];

	pthread_mutex_lock(&h->mutex);
	snprintf(l->resource, sizeof l->resource, "%s", resource);
	snprintf(l->token, sizeof l->token, "%s", token);
	pthread_mutex_unlock(&h->mutex);
	snprintf(session, sizeof session, "%s of %s", token, resource);
	lf_lease_begins(h, session, h->options.ttl_s * INT64_C(1000000), sent);
}

static lf_result
lease_acquire(lf_holder *h, const char *resource, const char *request, int wait_ms, int64_t *token)
{
	lease_link *l = h->link;
	char		ttl[32];
	char		wait[32];
	const char *values[4] = {resource, h->options.owner, ttl, wait};
	PGresult   *res;
	int64_t		sent;
	lf_result	result;

	(void) request;
	snprintf(ttl, sizeof ttl, "%d s", h->options.ttl_s);
	snprintf(wait, sizeof wait, "%d ms", wait_ms);
	result = ask(h, l->asking, "SELECT token FROM lockfence.acquire($1, $2, $3::interval, $4::interval)",
				 4, values, &res, &sent);
	if (result == LF_OK && PQntuples(res) == 0)
		result = LF_HELD;
	else if (result == LF_OK && token_parse(PQgetvalue(res, 0, 0), token))
		begin(h, resource, PQgetvalue(res, 0, 0), sent);
	PQclear(res);
	return result;
}

/* The server gives up after a third of the lease by itself. */
static lf_result
lease_renew(lf_holder *h, long timeout_ms, int64_t *sent)
{
	lease_link *l = h->link;
	char		resource[sizeof l->resource];
	char		token[sizeof l->token];
	char		ttl[32];
	const char *values[3] = {resource, token, ttl};
	PGresult   *res;
	lf_result	result;

	(void) timeout_ms;
	pthread_mutex_lock(&h->mutex);
	strcpy(resource, l->resource);
	strcpy(token, l->token);
	pthread_mutex_unlock(&h->mutex);
	snprintf(ttl, sizeof ttl, "%d s", h->options.ttl_s);
	result = ask(h, l->renewing, "SELECT lockfence.renew($1, $2::bigint, $3::interval)",
				 3, values, &res, sent);
	PQclear(res);
	return result;
}

static lf_result
lease_release(lf_holder *h, const char *resource, int64_t token)
{
	lease_link *l = h->link;
	char		text[32];
	const char *values[2] = {resource, text};
	PGresult   *res;
	int64_t		sent;
	lf_result	result;

	snprintf(text, sizeof text, "%" PRId64, token);
	lf_lease_is_released(h);
	result = ask(h, l->asking, "SELECT lockfence.release($1, $2::bigint)", 2, values, &res, &sent);
	if (result == LF_OK && strcmp(PQgetvalue(res, 0, 0), "t") != 0)
		result = LF_GONE;
	if (result == LF_OK || result == LF_GONE)
		lf_lease_ends(h);
	PQclear(res);
	return result;
}

const lf_service lf_leases = {
	lease_connect, lease_close, lease_open, lease_acquire, lease_renew, lease_release
};
