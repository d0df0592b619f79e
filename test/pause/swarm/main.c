/*
 * main.c
 *	  pause-swarm: many holders in one process, each with a session of its own.
 *
 * On SIGTERM it records what became of its renewals and ends, releasing nothing.
 */
#include <curl/curl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "swarm.h"

static const char *history_path;
static int	first = 1;
static int	clients = 1;

static void
usage(void)
{
	fprintf(stderr, "usage: pause-swarm --url URL --certs DIR --dsn DSN --locks NAME --history FILE\n"
			"  --generation NAME --first N --clients N --ttl S\n");
	exit(64);
}

static void
read_options(swarm *s, int argc, char **argv)
{
	static const struct option longs[] = {
		{"url", 1, NULL, 'u'}, {"certs", 1, NULL, 'c'}, {"dsn", 1, NULL, 'd'},
		{"locks", 1, NULL, 'l'}, {"history", 1, NULL, 'h'}, {"generation", 1, NULL, 'g'},
		{"first", 1, NULL, 'f'}, {"clients", 1, NULL, 'n'}, {"ttl", 1, NULL, 't'},
		{NULL, 0, NULL, 0}
	};
	int			option;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (option)
		{
			case 'u': s->url = optarg; break;
			case 'c': s->certs = optarg; break;
			case 'd': s->dsn = optarg; break;
			case 'l': s->locks = optarg; break;
			case 'h': history_path = optarg; break;
			case 'g': s->generation = optarg; break;
			case 'f': first = atoi(optarg); break;
			case 'n': clients = atoi(optarg); break;
			case 't': s->ttl_s = atoi(optarg); break;
			default: usage();
		}
	if (!s->url || !s->certs || !s->dsn || !s->locks || !s->generation)
		usage();
}

/* Two connections and a few files a client. */
static void
raise_file_limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void
start_clients(swarm *s, client *all, pthread_t *threads)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (int i = 0; i < clients; i++)
	{
		client_init(&all[i], s, first + i);
		if (pthread_create(&threads[i], &attr, client_run, &all[i]) != 0)
		{
			perror("pthread_create");
			exit(1);
		}
	}
	pthread_attr_destroy(&attr);
}

int
main(int argc, char **argv)
{
	swarm		s = {.ttl_s = 15, .conn_mutex = PTHREAD_MUTEX_INITIALIZER};
	client	   *all;
	pthread_t  *threads;
	sigset_t	wanted;
	int			sig;

	read_options(&s, argc, argv);
	raise_file_limit();
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	sigprocmask(SIG_BLOCK, &wanted, NULL);	/* before any thread starts */
	signal(SIGPIPE, SIG_IGN);
	curl_global_init(CURL_GLOBAL_ALL);
	s.conn = PQconnectdb(s.dsn);
	if (PQstatus(s.conn) != CONNECTION_OK || recorder_open(&s.history, history_path, s.generation) < 0)
	{
		fprintf(stderr, "pause-swarm: %s", PQerrorMessage(s.conn));
		return 1;
	}
	all = calloc(clients, sizeof *all);
	threads = calloc(clients, sizeof *threads);
	start_clients(&s, all, threads);
	sigwait(&wanted, &sig);
	atomic_store(&s.over, true);
	for (int i = 0; i < clients; i++)
		pthread_join(threads[i], NULL);
	record(&s.history, "totals", "ok", "{s:i, s:i, s:i}", "shed", atomic_load(&s.renewals_shed),
		   "failed", atomic_load(&s.renewals_failed), "fenced", atomic_load(&s.fenced));
	return 0;
}
