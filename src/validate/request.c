/*
 * request.c
 *		One question to the lock service.
 *
 * curl tells for which sockets and until when it waits, and PostgreSQL does the
 * waiting: with the latch and the postmaster's death in the same set, so that a
 * cancelled statement, a terminated session or a shutdown ends the request at
 * once.  An error on the way closes the connection.
 *
 * curl is asked before each wait, and the set is created anew for it.  (curl can
 * also announce changes, by CURLMOPT_SOCKETFUNCTION.  But libcurl 7.88, where it
 * goes on to the next address of a service, opens a socket under the descriptor
 * of the one that it closed, and announces the end of the old one alone.)  That
 * costs microseconds.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/latch.h"

#include "answer.h"
#include "compat.h"
#include "connection.h"
#include "request.h"
#include "settings.h"
#include "wait.h"

/* The question as it is sent. */
static char question_text[MAX_QUESTION];
static size_t question_len = 0;

/*
 * The longest wait before curl is asked again, in milliseconds, and that without a
 * socket: a descriptor of FD_SETSIZE or more does not fit into curl's sets.
 */
#define MAX_WAIT_MS 100
#define BLIND_WAIT_MS 10

/* What curl waits for. */
typedef struct Sockets
{
	int			highest;		/* -1: none */
	fd_set		readable;
	fd_set		writeable;
	fd_set		failed;
} Sockets;

/* Have curl do what can be done without waiting. */
static void
act(Connection *conn)
{
	sigset_t	saved;
	int			running;

	lockfence_block_signals(&saved);
	(void) curl_multi_perform(conn->multi, &running);
	lockfence_restore_signals(&saved);
}

/* Which sockets curl waits for now. */
static void
look_at_sockets(Connection *conn, Sockets *sockets)
{
	FD_ZERO(&sockets->readable);
	FD_ZERO(&sockets->writeable);
	FD_ZERO(&sockets->failed);
	sockets->highest = -1;
	(void) curl_multi_fdset(conn->multi, &sockets->readable, &sockets->writeable,
							&sockets->failed, &sockets->highest);
}

/* How long to wait at most, in milliseconds. */
static long
time_left(Connection *conn, const Sockets *sockets, uint64 deadline)
{
	uint64		now = lockfence_now_us();
	long		left = deadline > now ? (long) ((deadline - now + 999) / 1000) : 0;
	long		longest = Min(left, sockets->highest < 0 ? BLIND_WAIT_MS : MAX_WAIT_MS);
	long		timer = -1;

	(void) curl_multi_timeout(conn->multi, &timer);
	return timer < 0 ? longest : Min(longest, timer);
}

static void
add_sockets(WaitEventSet *set, const Sockets *sockets)
{
	for (int fd = 0; fd <= sockets->highest; fd++)
	{
		int			events = (FD_ISSET(fd, &sockets->readable) ? WL_SOCKET_READABLE : 0) |
			(FD_ISSET(fd, &sockets->writeable) ? WL_SOCKET_WRITEABLE : 0);

		if (events != 0)
			AddWaitEventToSet(set, events, fd, NULL, NULL);
	}
}

/* Wait for what curl waits for, or for an interrupt. */
static void
wait_once(Connection *conn, uint64 deadline)
{
	Sockets		sockets;
	WaitEventSet *set;
	WaitEvent	event;

	look_at_sockets(conn, &sockets);
	set = LOCKFENCE_CREATE_WAIT_SET(sockets.highest + 3);
	PG_TRY();
	{
		AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
		AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
		add_sockets(set, &sockets);
		(void) WaitEventSetWait(set, time_left(conn, &sockets, deadline), &event, 1,
								lockfence_wait_event());
	}
	PG_FINALLY();
	{
		FreeWaitEventSet(set);
	}
	PG_END_TRY();
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/* Is the request over, and how? */
static bool
is_over(Connection *conn, CURLcode *result)
{
	int			queued;
	CURLMsg    *message;

	while ((message = curl_multi_info_read(conn->multi, &queued)) != NULL)
	{
		if (message->msg == CURLMSG_DONE)
		{
			*result = message->data.result;
			return true;
		}
	}
	return false;
}

/* Hand the question to curl. */
static bool
start(Connection *conn, uint64 deadline)
{
	uint64		now = lockfence_now_us();
	long		left = deadline > now ? (long) ((deadline - now) / 1000) : 0;
	sigset_t	saved;
	bool		started;

	conn->headers_len = conn->body_len = 0;
	conn->error[0] = '\0';
	lockfence_block_signals(&saved);
	started = curl_easy_setopt(conn->easy, CURLOPT_POSTFIELDSIZE, (long) question_len) == CURLE_OK &&
		curl_easy_setopt(conn->easy, CURLOPT_POSTFIELDS, question_text) == CURLE_OK &&
		curl_easy_setopt(conn->easy, CURLOPT_TIMEOUT_MS, Max(left, 1)) == CURLE_OK &&
		curl_easy_setopt(conn->easy, CURLOPT_CONNECTTIMEOUT_MS,
						 (long) lockfence_settings.connect_timeout) == CURLE_OK &&
		curl_multi_add_handle(conn->multi, conn->easy) == CURLM_OK;
	lockfence_restore_signals(&saved);
	return started;
}

/* Have curl transfer it.  curl keeps the deadline itself; here it is only enforced. */
static CURLcode
transfer(Connection *conn, uint64 deadline)
{
	CURLcode	result;

	act(conn);
	while (!is_over(conn, &result))
	{
		if (lockfence_now_us() >= deadline + 100000)
			return CURLE_OPERATION_TIMEDOUT;
		wait_once(conn, deadline);
		act(conn);
	}
	return result;
}

/* Report an answer whose status is not 200. */
static bool
refuse_status(const Connection *conn, long status, Report *report)
{
	char		word[64];
	const char *code = lockfence_answer_code(conn->body, conn->body_len, word, sizeof(word));
	bool		is_ours = status >= 400 && status < 500 && status != 408 && status != 429;

	return lockfence_trouble(report, is_ours ? TROUBLE_QUESTION : TROUBLE_SERVICE,
							 "The lock service answered with status %ld%s%s.", status,
							 code != NULL ? ", " : "", code != NULL ? code : "");
}

/* Is the error one of this server's own certificates or settings? */
static bool
is_of_settings(CURLcode result)
{
	return result == CURLE_SSL_CERTPROBLEM || result == CURLE_SSL_CACERT_BADFILE ||
		result == CURLE_SETOPT_OPTION_SYNTAX;
}

/* Judge what has arrived. */
static bool
take_answer(Connection *conn, CURLcode result, const Question *question, Answer *answer, Report *report)
{
	long		status = 0;
	const char *problem;

	if (result == CURLE_WRITE_ERROR || result == CURLE_FILESIZE_EXCEEDED)
		return lockfence_trouble(report, TROUBLE_SERVICE, "The lock service sent too long an answer.");
	if (is_of_settings(result))
		return lockfence_trouble(report, TROUBLE_SETTINGS,
								 "A setting of lockfence_validate cannot be used: %s.",
								 curl_easy_strerror(result));
	if (result != CURLE_OK)
		return lockfence_trouble(report, TROUBLE_SERVICE, "%s.",
								 conn->error[0] != '\0' ? conn->error : curl_easy_strerror(result));
	(void) curl_easy_getinfo(conn->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return refuse_status(conn, status, report);
	problem = lockfence_answer_parse(conn->body, conn->body_len, question, answer);
	if (problem != NULL)
		return lockfence_trouble(report, TROUBLE_SERVICE,
								 "The lock service sent an invalid answer: %s.", problem);
	return true;
}

/* The request is done; keep the connection for the next one. */
static void
keep_connection(Connection *conn)
{
	sigset_t	saved;

	lockfence_block_signals(&saved);
	curl_multi_remove_handle(conn->multi, conn->easy);
	lockfence_restore_signals(&saved);
}

/* Prepare the question; false if the resource's name has no UTF-8 form. */
bool
lockfence_prepare(const Question *question, Report *report)
{
	question_len = lockfence_question_write(question, question_text, sizeof(question_text));
	return question_len > 0 ||
		lockfence_trouble(report, TROUBLE_QUESTION, "The resource's name is not valid UTF-8.");
}

/*
 * Ask the question that was prepared; false if there is no answer, and then the
 * report says why.
 */
bool
lockfence_ask(const Question *question, uint64 deadline, Answer *answer, Report *report)
{
	Connection *conn = lockfence_connection();
	bool		answered = false;

	lockfence_open_connection();
	PG_TRY();
	{
		CURLcode	result = start(conn, deadline) ? transfer(conn, deadline) : CURLE_FAILED_INIT;

		answered = take_answer(conn, result, question, answer, report);
	}
	PG_CATCH();
	{
		lockfence_close_connection();
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (answered)
		keep_connection(conn);
	else
		lockfence_close_connection();
	return answered;
}
