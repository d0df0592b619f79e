/*
 * takeover.c
 *		How long a new holder waits for its first accepted write, where the old
 *		one was stopped in a transaction of its own.
 *
 * Each time a holder, a process of its own, presents its token, writes, and is
 * stopped (SIGSTOP) before it commits.  The next one presents a higher token,
 * writes the same row and commits.  One line a time: milliseconds.
 */
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void
run(PGconn *conn, const char *sql)
{
	PGresult   *result = PQexec(conn, sql);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
	{
		fprintf(stderr, "takeover: %s: %s", sql, PQerrorMessage(conn));
		exit(1);
	}
	PQclear(result);
}

static PGconn *
open_session(void)
{
	PGconn	   *conn = PQconnectdb("");

	if (PQstatus(conn) != CONNECTION_OK)
	{
		fprintf(stderr, "takeover: %s", PQerrorMessage(conn));
		exit(1);
	}
	run(conn, "SET search_path = present");
	return conn;
}

static void
present_and_write(PGconn *conn, int token)
{
	char		sql[128];

	run(conn, "BEGIN");
	snprintf(sql, sizeof(sql), "SELECT lockfence.present('present:batch-1', %d)", token);
	run(conn, sql);
	run(conn, "UPDATE target SET v = v + 1 WHERE id = 1");
}

static pid_t
start_holder(int token)
{
	int			status;
	pid_t		pid = fork();

	if (pid == 0)
	{
		present_and_write(open_session(), token);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
	{
		fputs("takeover: the holder did not come as far as to be stopped\n", stderr);
		exit(1);
	}
	return pid;
}

static double
milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int
main(int argc, char **argv)
{
	int			times = argc > 1 ? atoi(argv[1]) : 20;
	PGconn	   *conn = open_session();

	run(conn, "SET lockfence.preempt = on");
	for (int i = 0; i < times; i++)
	{
		pid_t		holder = start_holder(100 + 2 * i);
		double		start = milliseconds();

		present_and_write(conn, 101 + 2 * i);
		run(conn, "COMMIT");
		printf("%.3f\n", milliseconds() - start);
		kill(holder, SIGKILL);
		waitpid(holder, NULL, 0);
	}
	return 0;
}
