/*
 * lease.c
 *		The lease, as the process knows it that watches over the command: until when
 *		it is safe, and when to ask the keeper for a renewal.
 *
 * The server counts the TTL from when it gets the request; here it counts from
 * before the request is sent, so that the end comes no later here than there.
 */
#include "lease.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message.h"
#include "signals.h"

/*
 * acquire() waits in the server, where a signal does not reach it: so for a moment
 * at a time.  The end of a lease counts from before it.
 */
#define LONGEST_ACQUIRE 1000
#define LONGEST_RELEASE 10000

static Millis
earlier(Millis a, Millis b)
{
	return a < b ? a : b;
}

static void
start_keeper(Lease *lease)
{
	int			fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
		fail_by_errno("create a socket");
	if ((lease->keeper = fork()) < 0)
		fail_by_errno("start a process");
	if (lease->keeper == 0)
	{
		close(fds[0]);
		keeper_serve(fds[1], lease->options);
	}
	close(fds[1]);
	lease->fd = fds[0];
}

/* Ends the keeper, which may be waiting for something that does not come. */
static void
end_keeper(Lease *lease)
{
	close(lease->fd);
	kill(lease->keeper, SIGKILL);
	while (waitpid(lease->keeper, NULL, 0) < 0 && errno == EINTR)
		;
}

static void
ask(Lease *lease, Request request, Millis wait, Millis answer_by)
{
	Question	question = {.request = request, .wait = wait};

	memcpy(question.token, lease->token, sizeof(question.token));
	/* if the keeper is no more, there will be no answer either */
	send(lease->fd, &question, sizeof(question), MSG_NOSIGNAL);
	lease->answer_by = answer_by;
}

/* An answer that has begun to come is soon there as a whole. */
static void
receive(Lease *lease, Answer *answer)
{
	lease->answer_by = 0;
	if (recv(lease->fd, answer, sizeof(*answer), MSG_WAITALL) == sizeof(*answer))
		return;
	*answer = (Answer) {.outcome = OUTCOME_FAILED, .message = "the process that asks the server has ended"};
	end_keeper(lease);
	start_keeper(lease);
}

void
lease_open(Lease *lease, const Options *options)
{
	*lease = (Lease) {.options = options};
	start_keeper(lease);
}

static void
start_life(Lease *lease, Millis from)
{
	lease->ends = from + lease->options->ttl;
	lease->renew_at = from + lease->options->ttl / 3;
}

/* ---- acquiring */

/* Waits for the answer, but after a signal only as long as an answer should take. */
static bool
await_answer(Lease *lease, int *signal)
{
	Millis		limit = INT64_MAX;

	while (!signals_wait(lease->fd, limit))
	{
		if (clock_now() >= limit)
			return false;
		if (*signal == 0 && (*signal = signals_next()) != 0)
			limit = clock_now() + 3 * LONGEST_ACQUIRE;
	}
	return true;
}

/* Asks for the lease once, and waits for it at most so long. */
static Outcome
try_acquire(Lease *lease, Millis wait, int *signal)
{
	Answer		answer;

	ask(lease, ASK_ACQUIRE, wait, INT64_MAX);
	if (!await_answer(lease, signal))
		return OUTCOME_FAILED;
	receive(lease, &answer);
	if (answer.outcome == OUTCOME_FAILED)
		complain("could not acquire a lease of \"%s\": %s", lease->options->resource, answer.message);
	if (answer.outcome == OUTCOME_DONE)
	{
		memcpy(lease->token, answer.token, sizeof(lease->token));
		memcpy(lease->name, answer.name, sizeof(lease->name));
		start_life(lease, answer.asked_at);
	}
	return answer.outcome;
}

/* Acquires the lease, or sets the exit status that tells why it was not. */
bool
lease_acquire(Lease *lease, int *status)
{
	const Options *options = lease->options;
	Millis		step = earlier(LONGEST_ACQUIRE, options->ttl / 3);
	Millis		started = clock_now();
	int			signal = 0;
	Outcome		outcome;
	Millis		left;

	do
	{
		left = options->wait == WAIT_FOREVER ? step : started + options->wait - clock_now();
		left = left < 0 ? 0 : left;
		outcome = try_acquire(lease, earlier(left, step), &signal);
	} while (outcome == OUTCOME_DECLINED && signal == 0 && left > 0);

	if (outcome == OUTCOME_DONE && signal == 0)
		return true;
	if (outcome == OUTCOME_DONE)
		lease_release(lease);
	*status = signal != 0 ? STATUS_SIGNAL + signal
		: outcome == OUTCOME_DECLINED ? options->conflict_status : STATUS_FAILED;
	return false;
}

/* ---- keeping */

static void
take_failure(Lease *lease, const char *message)
{
	Millis		ttl = lease->options->ttl;

	if (!lease->failing)
		complain("could not renew the lease of \"%s\": %s", lease->options->resource, message);
	lease->failing = true;
	lease->renew_at = clock_now() + earlier(1000, ttl / 20);
}

/* There is an answer to a question for a renewal. */
void
lease_read(Lease *lease)
{
	Answer		answer;

	receive(lease, &answer);
	switch (answer.outcome)
	{
		case OUTCOME_DONE:
			lease->failing = false;
			start_life(lease, answer.asked_at);
			break;
		case OUTCOME_DECLINED:
			complain("could not renew the lease of \"%s\": %s", lease->options->resource, answer.message);
			lease->lost = true;
			break;
		case OUTCOME_FAILED:
			take_failure(lease, answer.message);
			break;
	}
}

/* Does what the time demands, and tells when to call it again. */
Millis
lease_keep(Lease *lease)
{
	Millis		ttl = lease->options->ttl;

	if (lease->answer_by != 0 && clock_now() >= lease->answer_by)
	{
		lease->answer_by = 0;
		end_keeper(lease);
		start_keeper(lease);
		take_failure(lease, "the server does not answer");
	}
	if (lease->answer_by == 0 && clock_now() >= lease->renew_at)
		ask(lease, ASK_RENEW, 0, clock_now() + ttl / 4);
	return lease->answer_by != 0 ? lease->answer_by : lease->renew_at;
}

/* ---- ending */

/* The next answer, if it comes in time. */
static bool
answer_in_time(Lease *lease, Millis limit, Answer *answer)
{
	while (!signals_wait(lease->fd, limit))
		if (clock_now() >= limit)
			return false;
	receive(lease, answer);
	return true;
}

/* Releases the lease, unless it has ended: then it is free, or another holder has it. */
void
lease_release(Lease *lease)
{
	Millis		limit = earlier(lease->ends, clock_now() + LONGEST_RELEASE);
	Answer		answer;
	bool		in_time;

	if (lease->lost)
		return;
	if (clock_now() >= lease->ends)
	{
		complain("the lease of \"%s\" ended before the command did", lease->options->resource);
		return;
	}
	/* a renewal that is under way is answered first */
	in_time = lease->answer_by == 0 || answer_in_time(lease, limit, &answer);
	if (in_time)
	{
		ask(lease, ASK_RELEASE, 0, limit);
		in_time = answer_in_time(lease, limit, &answer);
	}
	if (!in_time)
		complain("could not release the lease of \"%s\": the server does not answer", lease->options->resource);
	else if (answer.outcome == OUTCOME_FAILED)
		complain("could not release the lease of \"%s\": %s", lease->options->resource, answer.message);
	else if (answer.outcome == OUTCOME_DECLINED)
		complain("the lease of \"%s\" was lost before the command ended", lease->options->resource);
}

/* The keeper takes leave of the server, if that does not take long. */
void
lease_close(Lease *lease)
{
	Millis		limit = clock_now() + 1000;

	shutdown(lease->fd, SHUT_WR);
	while (!signals_wait(lease->fd, limit) && clock_now() < limit)
		;
	end_keeper(lease);
}
