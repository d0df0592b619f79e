/*
 * lock.c
 *	  The holder library's calls, recorded.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "writer.h"

static void
on_fence(void *arg, const char *why)
{
	writer	   *w = arg;

	record(&w->history, "fence", "ok", "{s:s, s:s}", "lock", w->resource, "why", why);
}

static void
on_lease(void *arg, const char *what, const char *session, int64_t sent_us, int64_t ttl_us)
{
	writer	   *w = arg;

	record(&w->history, what, "ok", "{s:s, s:I, s:I}", "session", session,
		   "sent", (json_int_t) sent_us, "ttl", (json_int_t) ttl_us);
}

bool
lock_open(writer *w)
{
	static char owner[96];
	char		message[200];

	if (w->leases)
	{
		snprintf(owner, sizeof owner, "%s/%d", w->history.who, (int) getpid());
		w->options.owner = owner;
		w->options.lease_dsn = w->dsn;
	}
	w->options.on_fence = on_fence;
	w->options.on_lease = on_lease;
	w->options.arg = w;
	w->holder = lf_holder_open(&w->options, message, sizeof message);
	if (w->holder == NULL)
		fprintf(stderr, "%s: no session: %s\n", w->history.who, message);
	return w->holder != NULL;
}

static const char *
phase_of(lf_result result)
{
	return result == LF_OK ? "ok" : result == LF_UNKNOWN ? "unknown" : "no";
}

static const char *const names[] = {
	"ok", "held", "busy", "sealed", "unknown", "gone", "failed"
};

/* A grant by PostgreSQL is two operations in one: it presents the token as well. */
static void
record_takeover(writer *w, const char *acquire, const char *phase, const char *token)
{
	char		id[100];

	if (!w->leases)
		return;
	snprintf(id, sizeof id, "%s-p", acquire);
	record(&w->history, "present", phase, "{s:s, s:s, s:s*}", "id", id, "lock", w->resource,
		   "token", token);
}

/*
 * Tries until granted or until wait_s have passed.  One request, so one name and
 * one interval in the history, however often it had to be asked again.
 */
bool
lock_take(writer *w, int wait_s)
{
	static int	n;
	int64_t		until = clock_us() + wait_s * INT64_C(1000000);
	char		id[96];
	char		token[32];
	const char *phase;
	lf_result	result;
	bool		unknown = false;

	snprintf(id, sizeof id, "%s-a%d", w->history.who, ++n);
	record(&w->history, "acquire", "call", "{s:s, s:s}", "id", id, "lock", w->resource);
	record_takeover(w, id, "call", NULL);
	for (int attempt = 0;; attempt++)
	{
		result = lf_holder_try(w->holder, w->resource, id, 500, &w->token);
		unknown = unknown || result == LF_UNKNOWN;
		if (result == LF_OK || result == LF_GONE || clock_us() >= until ||
			lf_holder_check(w->holder) == LF_FENCED)
			break;
		sleep_us(lf_holder_retry_ms(w->holder, attempt) * INT64_C(1000));
	}
	snprintf(token, sizeof token, "%" PRId64, result == LF_OK ? w->token : 0);
	phase = unknown && result != LF_OK ? "unknown" : phase_of(result);
	record(&w->history, "acquire", phase, "{s:s, s:s, s:s, s:s, s:s}", "id", id, "lock", w->resource, "token", token,
		   "session", lf_holder_session(w->holder), "code", names[result]);
	record_takeover(w, id, phase, token);
	return result == LF_OK;
}

bool
lock_give_back(writer *w)
{
	static int	n;
	char		id[96];
	char		token[32];
	lf_result	result;
	bool		unknown = false;

	snprintf(id, sizeof id, "%s-r%d", w->history.who, ++n);
	snprintf(token, sizeof token, "%" PRId64, w->token);
	record(&w->history, "release", "call", "{s:s, s:s, s:s}", "id", id, "lock", w->resource,
		   "token", token);
	for (int attempt = 0;; attempt++)
	{
		result = lf_holder_release(w->holder, w->resource, w->token);
		if (result == LF_OK || result == LF_GONE || lf_holder_check(w->holder) == LF_FENCED)
			break;
		unknown = unknown || result == LF_UNKNOWN;
		sleep_us(lf_holder_retry_ms(w->holder, attempt) * INT64_C(1000));
	}
	/* "gone" after an attempt without an answer: that attempt may have done it */
	record(&w->history, "release", unknown && result != LF_OK ? "unknown" : phase_of(result),
		   "{s:s, s:s, s:s, s:s}", "id", id, "lock", w->resource, "token", token,
		   "code", names[result]);
	return result == LF_OK;
}
