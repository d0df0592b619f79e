/*
 * keeper.c
 *		The process that has the connection: it asks the server what lockfence-run
 *		wants to know, and may take as long as it likes.
 *
 * All of libpq is here, and what it calls: resolvers, TLS, authentication.  Any of
 * these can block for longer than a lease lives, so the process that watches over
 * the command does nothing of the kind.  It gives up a keeper that does not answer,
 * and starts another.  The command is no child of a keeper and inherits nothing
 * from it.
 */
#include "keeper.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

#include "message.h"
#include "signals.h"

/*
 * The name is needed as the command's sessions will send it at their start, where
 * the server takes bytes to be in the encoding of the database.
 */
static const char ACQUIRE[] =
"SELECT a.token, pg_catalog.convert_to($1::text, pg_catalog.getdatabaseencoding())"
" FROM lockfence.acquire($1::text, $2, $3::interval, $4::interval) AS a";
static const char RENEW[] = "SELECT lockfence.renew($1, $2, $3::interval)";
static const char RELEASE[] = "SELECT lockfence.release($1, $2)";

static PGconn *connection;

static void
take_message(Answer *answer, const char *message)
{
	snprintf(answer->message, sizeof(answer->message), "%s", message);
	answer->message[strcspn(answer->message, "\n")] = '\0';
}

static bool
connect_to_server(const Options *options)
{
	const char *keywords[] = {"dbname", "fallback_application_name", NULL};
	const char *values[] = {options->conninfo, PROGRAM, NULL};

	if (connection != NULL && PQstatus(connection) == CONNECTION_OK)
		return true;
	PQfinish(connection);
	connection = PQconnectdbParams(keywords, values, true);
	return PQstatus(connection) == CONNECTION_OK;
}

static bool
is_state(const Answer *answer, const char *state)
{
	return strcmp(answer->sqlstate, state) == 0;
}

static void
answer_failure(const PGresult *result, Answer *answer)
{
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	answer->outcome = OUTCOME_FAILED;
	snprintf(answer->sqlstate, sizeof(answer->sqlstate), "%s", state != NULL ? state : "");
	take_message(answer, primary != NULL ? primary : PQerrorMessage(connection));
	if (is_state(answer, "3F000") || is_state(answer, "42883"))
		snprintf(answer->message + strlen(answer->message), sizeof(answer->message) - strlen(answer->message),
				 "; is the extension lockfence_lease in the database \"%s\"?", PQdb(connection));
}

/* The answer's rows; NULL where there are none, and the answer says why. */
static PGresult *
query(const char *sql, int count, const char *const *values, const Options *options, Answer *answer)
{
	PGresult   *result;

	if (!connect_to_server(options))
	{
		answer->outcome = OUTCOME_FAILED;
		take_message(answer, PQerrorMessage(connection));
		return NULL;
	}
	answer->asked_at = clock_now();
	result = PQexecParams(connection, sql, count, NULL, values, NULL, NULL, 0);
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		return result;
	answer_failure(result, answer);
	PQclear(result);
	return NULL;
}

static void
format_millis(char *text, size_t size, Millis millis)
{
	snprintf(text, size, "%lld milliseconds", (long long) millis);
}

static void
acquire(const Question *question, const Options *options, Answer *answer)
{
	char		ttl[40],
				wait[40];
	const char *values[] = {options->resource, options->owner, ttl, wait};
	PGresult   *result;

	format_millis(ttl, sizeof(ttl), options->ttl);
	format_millis(wait, sizeof(wait), question->wait);
	result = query(ACQUIRE, 4, values, options, answer);
	if (result == NULL)
		return;
	if (PQntuples(result) == 0)
		answer->outcome = OUTCOME_DECLINED;
	else
	{
		size_t		length;
		unsigned char *name = PQunescapeBytea((unsigned char *) PQgetvalue(result, 0, 1), &length);

		if (name == NULL)
			fail("out of memory");
		snprintf(answer->token, sizeof(answer->token), "%s", PQgetvalue(result, 0, 0));
		snprintf(answer->name, sizeof(answer->name), "%.*s", (int) length, (char *) name);
		PQfreemem(name);
	}
	PQclear(result);
}

static void
renew(const Question *question, const Options *options, Answer *answer)
{
	char		ttl[40];
	const char *values[] = {options->resource, question->token, ttl};

	format_millis(ttl, sizeof(ttl), options->ttl);
	PQclear(query(RENEW, 3, values, options, answer));
	if (is_state(answer, "LF001"))
		answer->outcome = OUTCOME_DECLINED;
}

static void
release(const Question *question, const Options *options, Answer *answer)
{
	const char *values[] = {options->resource, question->token};
	PGresult   *result = query(RELEASE, 2, values, options, answer);

	if (result != NULL && strcmp(PQgetvalue(result, 0, 0), "f") == 0)
		answer->outcome = OUTCOME_DECLINED;
	PQclear(result);
}

static void
attend_to(const Question *question, const Options *options, Answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	switch (question->request)
	{
		case ASK_ACQUIRE:
			acquire(question, options, answer);
			break;
		case ASK_RENEW:
			renew(question, options, answer);
			break;
		case ASK_RELEASE:
			release(question, options, answer);
			break;
	}
}

/*
 * A connection that was idle may have been cut, by a restart of the server say: the
 * same is asked once more over a new one.  Not acquire(): if the server has granted
 * the lease before it was cut off, another try would wait for that to end.
 */
static bool
may_ask_again(const Question *question, const Answer *answer)
{
	return answer->outcome == OUTCOME_FAILED && answer->asked_at != 0
		&& question->request != ASK_ACQUIRE && PQstatus(connection) == CONNECTION_BAD;
}

/* Of several servers the first may not answer; then the next one's turn has to come in time. */
static void
limit_connecting(const Options *options)
{
	char		seconds[20];

	snprintf(seconds, sizeof(seconds), "%lld", (long long) (options->ttl / 12000 > 2 ? options->ttl / 12000 : 2));
	setenv("PGCONNECT_TIMEOUT", seconds, 0);
}

/* Answers questions until the other end of the socket is closed. */
void
keeper_serve(int fd, const Options *options)
{
	Question	question;
	Answer		answer;

#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	setpgid(0, 0);
	signals_ignore();
	limit_connecting(options);
	while (recv(fd, &question, sizeof(question), MSG_WAITALL) == sizeof(question))
	{
		attend_to(&question, options, &answer);
		if (may_ask_again(&question, &answer))
			attend_to(&question, options, &answer);
		if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			break;
	}
	PQfinish(connection);
	_exit(EXIT_SUCCESS);
}
