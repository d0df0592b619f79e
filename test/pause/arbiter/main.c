/*
 * main.c
 *	  The arbiter's options, start and stop.
 */
#include <curl/curl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter.h"

settings	conf = {
	.etcd_timeout_ms = 1000,
	.deadline_ms = 2500,
	.max_acquires = 64,
	.max_wait_ms = 10000,
};

static const char *history_path;

static void
usage(void)
{
	fprintf(stderr,
			"usage: pause-arbiter --etcd URL... --work-socket PATH --renew-socket PATH\n"
			"                     --state FILE --audit FILE [options]\n"
			"  --admin NAME        may force-release and advance the epoch (repeatable)\n"
			"  --floor-dsn DSN     PostgreSQL that knows the highest token accepted\n"
			"  --etcd-timeout MS   of one request to etcd (1000)\n"
			"  --deadline MS       of one operation with its retries (2500)\n"
			"  --max-acquires N    at once; more are shed with 503 (64)\n"
			"  --history FILE      records the grants whose answer was lost\n"
			"  --gate FILE         grants wait while it exists\n"
			"  --sabotage NAME     is at fault: grants-twice or never-seals\n");
	exit(64);
}

static void
add(const char **list, int *n, int max)
{
	if (*n >= max)
		usage();
	list[(*n)++] = optarg;
}

static void
set_sabotage(const char *name)
{
	conf.grants_twice = strcmp(name, "grants-twice") == 0;
	conf.never_seals = strcmp(name, "never-seals") == 0;
	if (!conf.grants_twice && !conf.never_seals)
		usage();
}

static void
set_option(int option)
{
	switch (option)
	{
		case 'e': add(conf.endpoints, &conf.nendpoints, MAX_ENDPOINTS); break;
		case 'A': add(conf.admins, &conf.nadmins, 8); break;
		case 'w': conf.work_socket = optarg; break;
		case 'r': conf.renew_socket = optarg; break;
		case 's': conf.state_path = optarg; break;
		case 'a': conf.audit_path = optarg; break;
		case 'f': conf.floor_dsn = optarg; break;
		case 't': conf.etcd_timeout_ms = atoi(optarg); break;
		case 'd': conf.deadline_ms = atoi(optarg); break;
		case 'm': conf.max_acquires = atoi(optarg); break;
		case 'h': history_path = optarg; break;
		case 'g': conf.gate = optarg; break;
		case 'S': set_sabotage(optarg); break;
		default: usage();
	}
}

static void
read_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{"etcd", 1, NULL, 'e'}, {"admin", 1, NULL, 'A'}, {"work-socket", 1, NULL, 'w'},
		{"renew-socket", 1, NULL, 'r'}, {"state", 1, NULL, 's'}, {"audit", 1, NULL, 'a'},
		{"floor-dsn", 1, NULL, 'f'}, {"etcd-timeout", 1, NULL, 't'}, {"deadline", 1, NULL, 'd'},
		{"max-acquires", 1, NULL, 'm'}, {"history", 1, NULL, 'h'}, {"gate", 1, NULL, 'g'},
		{"sabotage", 1, NULL, 'S'}, {NULL, 0, NULL, 0}
	};
	int			option;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1)
		set_option(option);
	if (conf.nendpoints == 0 || !conf.work_socket || !conf.renew_socket || !conf.state_path ||
		!conf.audit_path)
		usage();
}

int
main(int argc, char **argv)
{
	sigset_t	wanted;
	int			sig;

	read_options(argc, argv);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigprocmask(SIG_BLOCK, &wanted, NULL);	/* before any thread starts */
	signal(SIGPIPE, SIG_IGN);
	curl_global_init(CURL_GLOBAL_ALL);
	if (recorder_open(&conf.history, history_path, "arbiter") < 0)
	{
		perror(history_path);
		return 1;
	}
	if (audit_start() < 0)
	{
		perror(conf.audit_path);
		return 1;
	}
	etcd_start();
	seal_start();
	if (http_start() < 0)
	{
		fprintf(stderr, "cannot listen on %s and %s\n", conf.work_socket, conf.renew_socket);
		return 1;
	}
	sigwait(&wanted, &sig);
	http_stop();
	etcd_stop();
	seal_save();
	return 0;
}
