/*
 * request.c
 *		One question to the lock service.
 *
 * curl tells for which sockets and until when it waits, and PostgreSQL does the
 * waiting: with the latch and the postmaster's death in the same set, so that a
 * cancelled statement, a terminated session or a shutdown ends the request at
 * once.  An error on the way closes the connection.
 *
 * The set is created for each wait, since curl waits for different sockets each
 * time and none can be removed from a set.  It costs microseconds.
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

/* Have curl act on a socket, or on its timer. */
static void
act(Connection *conn, curl_socket_t fd, int what)
{
	sigset_t	saved;
	int			running;

	lockfence_block_signals(&saved);
	(void) curl_multi_socket_action(conn->multi, fd, what, &running);
	lockfence_restore_signals(&saved);
}

static bool
timer_is_due(const Connection *conn, uint64 deadline)
{
	uint64		now = lockfence_now_us();

	return now >= deadline || (conn->timer_at != 0 && now >= conn->timer_at);
}

/* How long to wait at most, in milliseconds, rounded up. */
static long
time_left(const Connection *conn, uint64 deadline)
{
	uint64		now = lockfence_now_us();
	uint64		until = conn->timer_at != 0 ? Min(conn->timer_at, deadline) : deadline;

	return until > now ? (long) ((until - now + 999) / 1000) : 0;
}

static void
add_sockets(WaitEventSet *set, const Connection *conn)
{
	for (int i = 0; i < conn->nsockets; i++)
		AddWaitEventToSet(set,
						  (conn->sockets[i].what & CURL_POLL_IN ? WL_SOCKET_READABLE : 0) |
						  (conn->sockets[i].what & CURL_POLL_OUT ? WL_SOCKET_WRITEABLE : 0),
						  conn->sockets[i].fd, NULL, NULL);
}

/* Wait for the events of curl, or for an interrupt; returns how many events. */
static int
wait_once(const Connection *conn, uint64 deadline, WaitEvent *events)
{
	WaitEventSet *set = LOCKFENCE_CREATE_WAIT_SET(MAX_SOCKETS + 2);
	int			count = 0;

	PG_TRY();
	{
		AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
		AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
		add_sockets(set, conn);
		count = WaitEventSetWait(set, time_left(conn, deadline), events, MAX_SOCKETS + 2,
								 lockfence_wait_event());
	}
	PG_FINALLY();
	{
		FreeWaitEventSet(set);
	}
	PG_END_TRY();
	return count;
}

/* Wait once and have curl act on what has happened. */
static void
wait_and_act(Connection *conn, uint64 deadline)
{
	WaitEvent	events[MAX_SOCKETS + 2];
	int			count = wait_once(conn, deadline, events);

	for (int i = 0; i < count; i++)
	{
		if (events[i].events & WL_LATCH_SET)
			ResetLatch(MyLatch);
	}
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < count; i++)
	{
		if (events[i].events & (WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE))
			act(conn, events[i].fd,
				(events[i].events & WL_SOCKET_READABLE ? CURL_CSELECT_IN : 0) |
				(events[i].events & WL_SOCKET_WRITEABLE ? CURL_CSELECT_OUT : 0));
	}
	if (timer_is_due(conn, deadline))
	{
		conn->timer_at = 0;
		act(conn, CURL_SOCKET_TIMEOUT, 0);
	}
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
	conn->timer_at = 0;
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

	act(conn, CURL_SOCKET_TIMEOUT, 0);
	while (!is_over(conn, &result))
	{
		if (conn->overflown)
			return CURLE_FAILED_INIT;
		if (lockfence_now_us() >= deadline + 100000)
			return CURLE_OPERATION_TIMEDOUT;
		wait_and_act(conn, deadline);
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
