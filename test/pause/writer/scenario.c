/*
 * scenario.c
 *	  What a writer does between acquiring and releasing.
 *
 * The paused ones check that they still hold the lock, as they should, and are
 * stopped after that check and before the write: where no client can help.  They
 * then wait for a file, so that being stopped at the right place does not depend
 * on how fast a process is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "writer.h"

enum
{
	DONE = 0, WRITE_ACCEPTED = 1, TROUBLE = 2
};

static void
wait_for_gate(const writer *w)
{
	while (w->gate && access(w->gate, F_OK) != 0)
		sleep_us(10000);
}

static int
trouble(const writer *w, const char *what)
{
	fprintf(stderr, "%s: %s\n", w->history.who, what);
	return TROUBLE;
}

static bool
take_over(writer *w)
{
	if (w->holder && !lock_take(w, w->wait_s))
		return false;
	return w->leases || db_present(w) == ACCEPTED;
}

/* Checks, says that it is where it shall be stopped, and goes on through the gate. */
static bool
be_paused(writer *w)
{
	lf_state	state = w->holder ? lf_holder_check(w->holder) : LF_HOLDING;

	if (state != LF_HOLDING)
		return false;
	record(&w->history, "ready", "ok", "{s:s}", "lock", w->resource);
	wait_for_gate(w);
	return true;
}

/* After its stale write a holder learns, at the latest now, that it was fenced. */
static int
judge_stale_write(writer *w, fate f)
{
	if (w->holder)
		lf_holder_check(w->holder);
	if (f == REFUSED_STALE)
		return DONE;
	return f == ACCEPTED ? WRITE_ACCEPTED : trouble(w, "the write was neither accepted nor refused as stale");
}

static int
pause_between(writer *w)
{
	if (!take_over(w) || !db_read(w) || !be_paused(w))
		return trouble(w, "did not get to the pause");
	return judge_stale_write(w, db_write(w, false));
}

static int
pause_open(writer *w, bool holding)
{
	fate		f;

	if (!take_over(w) || !db_run(w, "BEGIN") || (holding && !db_present_open(w)) || !db_read(w) ||
		!be_paused(w))
		return trouble(w, "did not get to the pause");
	f = db_write(w, true);
	/* ended by the fence while it slept: a program reconnects and tries again */
	if (f == NOT_DONE && PQstatus(w->conn) == CONNECTION_BAD && db_connect(w))
		f = db_write(w, false);
	return judge_stale_write(w, f);
}

/*
 * The next holder: takes over, writes, writes again after the old one woke up.
 * An idle one writes only then.
 */
static int
succeed(writer *w, bool idle)
{
	if (!take_over(w) || (!idle && db_write(w, false) != ACCEPTED))
		return trouble(w, "could not take over");
	wait_for_gate(w);
	if (db_write(w, false) != ACCEPTED)
		return trouble(w, "the rightful holder's write was not accepted");
	if (w->holder)
		lock_give_back(w);
	return DONE;
}

static void
one_round(writer *w)
{
	if (!lock_take(w, w->wait_s))
		return;
	if (w->leases || db_present(w) == ACCEPTED)
		for (int i = 0; i < 2 && lf_holder_check(w->holder) == LF_HOLDING; i++)
			db_write(w, false);
	lock_give_back(w);
}

static bool
fresh_session(writer *w)
{
	lf_holder_close(w->holder);
	return lock_open(w);
}

/* Takes one lock after another until its time is over or it is told to end. */
static int
loop(writer *w)
{
	int64_t		until = clock_us() + w->seconds * INT64_C(1000000);
	const char *base = w->resource;
	char		name[200];

	w->resource = name;
	while (clock_us() < until && !(w->stop_file && access(w->stop_file, F_OK) == 0))
	{
		snprintf(name, sizeof name, "%s-%d", base, rand_r(&w->seed) % w->nlocks + 1);
		if (PQstatus(w->conn) != CONNECTION_OK && !db_connect(w))
			return trouble(w, "lost PostgreSQL");
		if (w->holder == NULL || lf_holder_check(w->holder) == LF_FENCED)
		{
			if (!fresh_session(w))
			{
				w->holder = NULL;
				sleep_us(200000);
				continue;
			}
		}
		one_round(w);
	}
	return DONE;
}

/* Writes under a token it was given: accepted or refused is for the caller to judge. */
static int
write_once(writer *w, bool present)
{
	fate		f = NOT_DONE;

	if (!present || db_present(w) == ACCEPTED)
		f = db_write(w, false);
	return f == ACCEPTED ? WRITE_ACCEPTED : f == REFUSED_STALE ? DONE : TROUBLE;
}

int
run_scenario(writer *w)
{
	if (strcmp(w->scenario, "write") == 0)
		return write_once(w, true);
	if (strcmp(w->scenario, "stale-write") == 0)
		return write_once(w, false);
	if (strcmp(w->scenario, "between") == 0)
		return pause_between(w);
	if (strcmp(w->scenario, "open-read") == 0)
		return pause_open(w, false);
	if (strcmp(w->scenario, "open-held") == 0)
		return pause_open(w, true);
	if (strcmp(w->scenario, "successor") == 0)
		return succeed(w, false);
	if (strcmp(w->scenario, "idle-successor") == 0)
		return succeed(w, true);
	if (strcmp(w->scenario, "loop") == 0)
		return loop(w);
	return trouble(w, "there is no such scenario");
}
