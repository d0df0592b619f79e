/*
 * request.c
 *		One question, put to the lock service.
 *
 * curl says which sockets and which time it waits for, and PostgreSQL does the
 * waiting: with the latch and the postmaster's death in the same set, so that a
 * cancelled statement, a terminated session and a shutdown end the request at
 * once.  An error on the way closes the connection.
 *
 * The set is made for each wait, since what curl waits for changes between them
 * and nothing can be taken out of a set.  It costs microseconds.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/latch.h"

#include "line.h"
#include "validate.h"

/* The question as it is sent. */
static char question_text[MAX_QUESTION];
static size_t question_len = 0;

/* Have curl act on a socket, or on its timer. */
static void
act(Line *line, curl_socket_t fd, int what)
{
	sigset_t	saved;
	int			running;

	lockfence_block_signals(&saved);
	(void) curl_multi_socket_action(line->multi, fd, what, &running);
	lockfence_restore_signals(&saved);
}

static bool
timer_is_due(const Line *line, uint64 deadline)
{
	uint64		now = lockfence_now_us();

	return now >= deadline || (line->timer_at != 0 && now >= line->timer_at);
}

/* How long to wait at most, in milliseconds, rounded up. */
static long
time_left(const Line *line, uint64 deadline)
{
	uint64		now = lockfence_now_us();
	uint64		until = line->timer_at != 0 ? Min(line->timer_at, deadline) : deadline;

	return until > now ? (long) ((until - now + 999) / 1000) : 0;
}

static void
add_sockets(WaitEventSet *set, const Line *line)
{
	for (int i = 0; i < line->nsockets; i++)
		AddWaitEventToSet(set,
						  (line->sockets[i].what & CURL_POLL_IN ? WL_SOCKET_READABLE : 0) |
						  (line->sockets[i].what & CURL_POLL_OUT ? WL_SOCKET_WRITEABLE : 0),
						  line->sockets[i].fd, NULL, NULL);
}

/* Wait for what curl waits for, or for an interrupt; returns how many events. */
static int
wait_once(const Line *line, uint64 deadline, WaitEvent *events)
{
	WaitEventSet *set = LOCKFENCE_CREATE_WAIT_SET(MAX_SOCKETS + 2);
	int			count = 0;

	PG_TRY();
	{
		AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
		AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
		add_sockets(set, line);
		count = WaitEventSetWait(set, time_left(line, deadline), events, MAX_SOCKETS + 2,
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
wait_and_act(Line *line, uint64 deadline)
{
	WaitEvent	events[MAX_SOCKETS + 2];
	int			count = wait_once(line, deadline, events);

	for (int i = 0; i < count; i++)
	{
		if (events[i].events & WL_LATCH_SET)
			ResetLatch(MyLatch);
	}
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < count; i++)
	{
		if (events[i].events & (WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE))
			act(line, events[i].fd,
				(events[i].events & WL_SOCKET_READABLE ? CURL_CSELECT_IN : 0) |
				(events[i].events & WL_SOCKET_WRITEABLE ? CURL_CSELECT_OUT : 0));
	}
	if (timer_is_due(line, deadline))
	{
		line->timer_at = 0;
		act(line, CURL_SOCKET_TIMEOUT, 0);
	}
}

/* Is the request over, and how? */
static bool
is_over(Line *line, CURLcode *result)
{
	int			queued;
	CURLMsg    *message;

	while ((message = curl_multi_info_read(line->multi, &queued)) != NULL)
	{
		if (message->msg == CURLMSG_DONE)
		{
			*result = message->data.result;
			return true;
		}
	}
	return false;
}

/* Put the question on the line. */
static bool
start(Line *line, uint64 deadline)
{
	uint64		now = lockfence_now_us();
	long		left = deadline > now ? (long) ((deadline - now) / 1000) : 0;
	sigset_t	saved;
	bool		started;

	line->headers_len = line->body_len = 0;
	line->error[0] = '\0';
	line->timer_at = 0;
	lockfence_block_signals(&saved);
	started = curl_easy_setopt(line->easy, CURLOPT_POSTFIELDSIZE, (long) question_len) == CURLE_OK &&
		curl_easy_setopt(line->easy, CURLOPT_POSTFIELDS, question_text) == CURLE_OK &&
		curl_easy_setopt(line->easy, CURLOPT_TIMEOUT_MS, Max(left, 1)) == CURLE_OK &&
		curl_easy_setopt(line->easy, CURLOPT_CONNECTTIMEOUT_MS,
						 (long) lockfence_settings.connect_timeout) == CURLE_OK &&
		curl_multi_add_handle(line->multi, line->easy) == CURLM_OK;
	lockfence_restore_signals(&saved);
	return started;
}

/* Have it transferred; the deadline is curl's own, and here only enforced. */
static CURLcode
transfer(Line *line, uint64 deadline)
{
	CURLcode	result;

	act(line, CURL_SOCKET_TIMEOUT, 0);
	while (!is_over(line, &result))
	{
		if (line->overflown)
			return CURLE_FAILED_INIT;
		if (lockfence_now_us() >= deadline + 100000)
			return CURLE_OPERATION_TIMEDOUT;
		wait_and_act(line, deadline);
	}
	return result;
}

/* What is wrong with an answer that is no 200. */
static bool
refuse_status(const Line *line, long status, Report *report)
{
	char		word[64];
	const char *code = lockfence_answer_code(line->body, line->body_len, word, sizeof(word));
	bool		is_ours = status >= 400 && status < 500 && status != 408 && status != 429;

	return lockfence_trouble(report, is_ours ? TROUBLE_QUESTION : TROUBLE_SERVICE,
							 "It answered with status %ld%s%s.", status,
							 code != NULL ? ", " : "", code != NULL ? code : "");
}

/* Is it this server's own certificates or settings that do not do? */
static bool
is_of_settings(CURLcode result)
{
	return result == CURLE_SSL_CERTPROBLEM || result == CURLE_SSL_CACERT_BADFILE ||
		result == CURLE_SETOPT_OPTION_SYNTAX;
}

/* Judge what has come. */
static bool
take_answer(Line *line, CURLcode result, const Question *question, Answer *answer, Report *report)
{
	long		status = 0;
	const char *problem;

	if (result == CURLE_WRITE_ERROR || result == CURLE_FILESIZE_EXCEEDED)
		return lockfence_trouble(report, TROUBLE_SERVICE, "Its answer is too long.");
	if (is_of_settings(result))
		return lockfence_trouble(report, TROUBLE_SETTINGS,
								 "What the settings of lockfence_validate name does not do: %s.",
								 curl_easy_strerror(result));
	if (result != CURLE_OK)
		return lockfence_trouble(report, TROUBLE_SERVICE, "%s.",
								 line->error[0] != '\0' ? line->error : curl_easy_strerror(result));
	(void) curl_easy_getinfo(line->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return refuse_status(line, status, report);
	problem = lockfence_answer_parse(line->body, line->body_len, question, answer);
	if (problem != NULL)
		return lockfence_trouble(report, TROUBLE_SERVICE, "Its answer is not one: %s.", problem);
	return true;
}

/* The line can be used again. */
static void
rest_line(Line *line)
{
	sigset_t	saved;

	lockfence_block_signals(&saved);
	curl_multi_remove_handle(line->multi, line->easy);
	lockfence_restore_signals(&saved);
}

/* Make the question ready; false if there is no such question. */
bool
lockfence_prepare(const Question *question, Report *report)
{
	question_len = lockfence_question_write(question, question_text, sizeof(question_text));
	return question_len > 0 ||
		lockfence_trouble(report, TROUBLE_QUESTION, "The resource's name is not valid UTF-8.");
}

/*
 * Ask what was made ready; false where there is no answer, and then the report
 * says why.
 */
bool
lockfence_ask(const Question *question, uint64 deadline, Answer *answer, Report *report)
{
	Line	   *line = lockfence_line();
	bool		answered = false;

	lockfence_open_line();
	PG_TRY();
	{
		CURLcode	result = start(line, deadline) ? transfer(line, deadline) : CURLE_FAILED_INIT;

		answered = take_answer(line, result, question, answer, report);
	}
	PG_CATCH();
	{
		lockfence_close_line();
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (answered)
		rest_line(line);
	else
		lockfence_close_line();
	return answered;
}
