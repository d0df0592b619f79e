/*
 * main.c
 *		Sets up, starts the workers, waits, judges.
 */
#include "property.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static PGconn *
connect_or_die(const Options *opt)
{
	PGconn	   *conn = PQconnectdb(opt->dsn);

	if (PQstatus(conn) != CONNECTION_OK)
	{
		fprintf(stderr, "property: %s", PQerrorMessage(conn));
		exit(2);
	}
	PQclear(must(conn, "SET client_min_messages = warning"));
	return conn;
}

static void
work(Worker *w)
{
	long		n = w->opt->transactions;

	session_connect(w);
	while (!atomic_load(&w->shm->stop) && (w->opt->transactions == 0 || n-- > 0))
		run_transaction(w);
	PQfinish(w->conn);
}

/* A child for a worker, or for the administrator after the last worker. */
static pid_t
start(Shared *shm, int id)
{
	bool		administrator = id == shm->opt.workers;
	Worker	   *w;
	pid_t		pid;

	fflush(stdout);
	pid = fork();
	if (pid != 0)
		return pid;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	w = calloc(1, sizeof(Worker));
	if (w == NULL)
		_exit(2);
	w->id = administrator ? MAX_WORKERS : id;
	w->shm = shm;
	w->opt = &shm->opt;
	w->stats = &shm->stats[w->id];
	w->rng = random_seed(shm->opt.seed, w->id);
	if (administrator)
		run_chaos(w);
	else
		work(w);
	_exit(0);
}

/* Is a run that is about many crashes over? */
static bool
had_its_crashes(Shared *shm)
{
	return shm->opt.crashes > 1 && atomic_load(&shm->crashes) >= shm->opt.crashes;
}

/* Wait for the workers; the time, if it is the limit, is up before that. */
static void
wait_for_workers(Shared *shm, const pid_t *pids)
{
	int			i;
	int			status;

	if (shm->opt.transactions == 0)
	{
		int			left = shm->opt.seconds;

		while (left > 0 && !atomic_load(&shm->broken) && !had_its_crashes(shm))
			left = (int) sleep(1) + left - 1;
		atomic_store(&shm->stop, true);
	}
	for (i = 0; i <= shm->opt.workers; i++)
	{
		if (i == shm->opt.workers)
			atomic_store(&shm->stop, true);
		if (pids[i] > 0 && (waitpid(pids[i], &status, 0) < 0 || status != 0))
			atomic_store(&shm->broken, true);
	}
}

static void
run_workers(Shared *shm)
{
	pid_t		pids[MAX_WORKERS + 1];
	int			i;

	for (i = 0; i < shm->opt.workers; i++)
		pids[i] = start(shm, i);
	pids[i] = shm->opt.chaos || shm->opt.crash ? start(shm, i) : 0;
	wait_for_workers(shm, pids);
}

/* Those whose worker was killed in between and did not come back in time. */
static void
roll_back_orphans(PGconn *conn)
{
	PGresult   *result = must(conn, "SELECT gid FROM pg_catalog.pg_prepared_xacts "
							  "WHERE database = pg_catalog.current_database()");
	int			i;

	for (i = 0; i < PQntuples(result); i++)
		PQclear(must(conn, "ROLLBACK PREPARED '%s'", PQgetvalue(result, i, 0)));
	PQclear(result);
}

static void
set_up(Shared *shm)
{
	PGconn	   *conn = connect_or_die(&shm->opt);

	shm->opt.server_version = PQserverVersion(conn);
	schema_create(conn, &shm->opt);
	PQfinish(conn);
}

static int
judge_run(Shared *shm)
{
	static Verdict verdict;
	PGconn	   *conn = connect_or_die(&shm->opt);
	int			status;

	roll_back_orphans(conn);
	oracle_judge(conn, shm, &verdict);
	status = report(shm, &verdict, conn);
	schema_drop_slot(conn);
	PQfinish(conn);
	return status;
}

int
main(int argc, char **argv)
{
	Shared	   *shm = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE,
						   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shm == MAP_FAILED)
		abort();
	parse_options(&shm->opt, argc, argv);
	printf("guard %s, seed %llu, %d workers, %d resources a fence%s%s%s\n", shm->opt.guard,
		   (unsigned long long) shm->opt.seed, shm->opt.workers, shm->opt.resources,
		   shm->opt.documented ? ", documented order" : "", shm->opt.preempt ? ", preemption" : "",
		   shm->opt.crash ? ", a crash" : "");
	fflush(stdout);

	set_up(shm);
	run_workers(shm);
	return judge_run(shm);
}
