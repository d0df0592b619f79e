/*
 * main.c
 *	  The writer's options.
 *
 * Exit status: 0 as it should be (a paused one's write was refused as stale),
 * 1 a stale write was ACCEPTED, 2 it did not come to that.
 */
#include <curl/curl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "writer.h"

static const char *history_path;
static const char *who = "writer";

static void
usage(void)
{
	fprintf(stderr, "usage: pause-writer --scenario NAME --resource NAME --dsn DSN --history FILE"
			" --who NAME\n  ((--leases | --url URL --ca F --cert F --key F) --ttl S | --token T)"
			" [--gate F] [--wait S]\n  [--seconds N --locks N --stop-file F] [--account T [--validated] | --table T --row JSON --change JSON]\n");
	exit(64);
}

static void
set_option(writer *w, int option)
{
	switch (option)
	{
		case 's': w->scenario = optarg; break;
		case 'r': w->resource = optarg; break;
		case 'd': w->dsn = optarg; break;
		case 'h': history_path = optarg; break;
		case 'W': who = optarg; break;
		case 'u': w->options.url = optarg; break;
		case 'a': w->options.ca = optarg; break;
		case 'c': w->options.cert = optarg; break;
		case 'k': w->options.key = optarg; break;
		case 'L': w->leases = true; break;
		case 't': w->options.ttl_s = atoi(optarg); break;
		case 'T':
			if (!token_parse(optarg, &w->token))
				usage();
			break;
		case 'g': w->gate = optarg; break;
		case 'w': w->wait_s = atoi(optarg); break;
		case 'n': w->seconds = atoi(optarg); break;
		case 'l': w->nlocks = atoi(optarg); break;
		case 'A': w->account = optarg; break;
		case 'V': w->validated = true; break;
		case 'b': w->table = optarg; break;
		case 'R': w->row = optarg; break;
		case 'S': w->stop_file = optarg; break;
		case 'C': w->change = optarg; break;
		default: usage();
	}
}

static void
read_options(writer *w, int argc, char **argv)
{
	static const struct option longs[] = {
		{"scenario", 1, NULL, 's'}, {"resource", 1, NULL, 'r'}, {"dsn", 1, NULL, 'd'},
		{"history", 1, NULL, 'h'}, {"who", 1, NULL, 'W'}, {"url", 1, NULL, 'u'},
		{"ca", 1, NULL, 'a'}, {"cert", 1, NULL, 'c'}, {"key", 1, NULL, 'k'},
		{"ttl", 1, NULL, 't'}, {"token", 1, NULL, 'T'}, {"gate", 1, NULL, 'g'},
		{"wait", 1, NULL, 'w'}, {"seconds", 1, NULL, 'n'}, {"locks", 1, NULL, 'l'},
		{"table", 1, NULL, 'b'}, {"row", 1, NULL, 'R'}, {"change", 1, NULL, 'C'},
		{"leases", 0, NULL, 'L'}, {"stop-file", 1, NULL, 'S'}, {"account", 1, NULL, 'A'},
		{"validated", 0, NULL, 'V'},
		{NULL, 0, NULL, 0}
	};
	int			option;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1)
		set_option(w, option);
	if (!w->scenario || !w->resource || !w->dsn || (!w->options.url && !w->leases && !w->token) ||
		(w->table && (!w->row || !w->change)))
		usage();
}

int
main(int argc, char **argv)
{
	writer		w = {.options = {.ttl_s = 15}, .wait_s = 60, .nlocks = 1,
		.account = "pause_kit.account"
	};
	int			status;

	read_options(&w, argc, argv);
	w.seed = (unsigned) getpid();
	if (recorder_open(&w.history, history_path, who) < 0)
	{
		perror(history_path);
		return 2;
	}
	curl_global_init(CURL_GLOBAL_ALL);
	if (!db_connect(&w) || ((w.options.url || w.leases) && !lock_open(&w)))
		return 2;
	status = run_scenario(&w);
	lf_holder_close(w.holder);
	PQfinish(w.conn);
	return status;
}
