/*
 * client.c
 *		Runs the statements of several variants by turns, and says what each took.
 *
 * A variant is a file of bench/variants; its statements are prepared, sent one
 * by one as an application would, and run in the schema that bears its name.
 * In every round each variant has one short slice, of the same number of
 * operations, on sessions of its own that stay open: a disturbance of the machine
 * disturbs all variants alike, and no variant pays for a start.
 *
 * One line of CSV a slice: variant, round, clients, the first session's process, operations,
 * seconds, CPU seconds of the sessions' processes, bytes of WAL, new multixacts.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_STATEMENTS	8
#define MAX_PARAMS		8
#define MAX_CLIENTS		64
#define MAX_VARIANTS	64
#define VALUE_SIZE		128
#define INT8OID			20
#define CONNECT			"-- connect "

/* What a statement may ask for by :name, the longer name first. */
static const char *const value_names[] = {
	"id", "batch", "resource", "key", "changes", "v", "token", "next"
};

enum Value
{
	ID, BATCH, RESOURCE, KEY, CHANGES, V, TOKEN, NEXT, NVALUES
};

typedef struct Statement
{
	char		sql[4096];
	char		name[16];		/* of the prepared statement */
	int			nparams;
	enum Value	params[MAX_PARAMS];
	Oid			types[MAX_PARAMS];	/* 0: as the server infers */
} Statement;

typedef struct Variant
{
	char		name[64];
	char		conninfo[256];	/* beyond the environment */
	int			nstatements;
	Statement	statements[MAX_STATEMENTS];
	struct Client *clients;
} Variant;

typedef struct Client
{
	const Variant *variant;
	PGconn	   *conn;
	long		first;			/* the rows that this client alone writes */
	long		nrows;
	long		position;		/* in them, where they are taken by turns */
	uint64_t	random;
	long		ops;
} Client;

typedef struct Usage
{
	double		seconds;
	double		cpu;
	long long	wal;
	long long	multixacts;
} Usage;

static int	nclients = 1;
static int	nrounds = 1;
static long nrows = 1000;
static long nbatches = 1000;
static long ops_wanted = 100;	/* of a slice, each client */
static long warm_up = 0;
static long stride = 0;			/* every so manieth row, by turns; 0: at random */
static const char *before_slice = NULL;
static const char *after_slice = NULL;
static const char *on_connect = NULL;
static const char *statements_of = NULL;	/* what every variant runs instead of its own */
static PGconn *monitor;

static void
die(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	fputs("client: ", stderr);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---------------------------------------------------------------- variants */

/* The value called so at the start of the text; NVALUES: none. */
static enum Value
value_at(const char *text, size_t *length)
{
	for (int i = 0; i < NVALUES; i++)
	{
		*length = strlen(value_names[i]);
		if (strncmp(text, value_names[i], *length) == 0 &&
			strspn(text + *length, "abcdefghijklmnopqrstuvwxyz_") == 0)
			return i;
	}
	return NVALUES;
}

/* Append the statement's text, with $n in place of :name. */
static void
append_sql(Statement *statement, const char *text)
{
	char	   *out = statement->sql + strlen(statement->sql);
	const char *end = statement->sql + sizeof(statement->sql) - 8;
	size_t		length;
	enum Value	value;

	while (*text != '\0' && out < end)
	{
		bool		is_cast = text[0] == ':' && text[1] == ':';

		if (is_cast)
			*out++ = *text++;
		else if (*text == ':' && (value = value_at(text + 1, &length)) != NVALUES &&
				 statement->nparams < MAX_PARAMS)
		{
			/* as drivers send their 64-bit integers */
			statement->types[statement->nparams] = value == TOKEN || value == NEXT ? INT8OID : 0;
			statement->params[statement->nparams++] = value;
			out += sprintf(out, "$%d", statement->nparams);
			text += length + 1;
			continue;
		}
		*out++ = *text++;
	}
	*out = '\0';
}

/*
 * Read what follows "-- each" in the file: statements that end with a ; at the end of a line.  Before that,
 * "-- connect" says how the variant's sessions connect.
 */
static void
read_statements(Variant *variant, const char *path)
{
	FILE	   *in = fopen(path, "r");
	char		line[1024];
	bool		in_each = false;
	Statement  *statement = variant->statements;

	if (in == NULL)
		die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), in) != NULL)
	{
		char	   *end = line + strcspn(line, "\n");

		if (strncmp(line, "-- each", 7) == 0)
			in_each = true;
		else if (!in_each && strncmp(line, CONNECT, strlen(CONNECT)) == 0)
			snprintf(variant->conninfo, sizeof(variant->conninfo), "%.*s",
					 (int) (end - line - strlen(CONNECT)), line + strlen(CONNECT));
		else if (in_each && strncmp(line, "--", 2) != 0)
		{
			bool		last = end > line && end[-1] == ';';

			if (variant->nstatements == MAX_STATEMENTS)
				die("%s: more than %d statements", path, MAX_STATEMENTS);
			if (last)
				end[-1] = '\0';
			append_sql(statement, line);
			if (last)
			{
				sprintf(statement->name, "s%d", ++variant->nstatements);
				statement++;
			}
		}
	}
	fclose(in);
	if (variant->nstatements == 0)
		die("%s: no statement follows \"-- each\"", path);
}

/* A variant is called as its file is. */
static void
read_variant(Variant *variant, const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	snprintf(variant->name, sizeof(variant->name), "%.*s", (int) strcspn(base, "."), base);
	read_statements(variant, statements_of ? statements_of : path);
}

/* ---------------------------------------------------------------- sessions */

static void
check(PGconn *conn, PGresult *result, const char *who)
{
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		die("%s: %s", who, PQerrorMessage(conn));
	PQclear(result);
}

static PGconn *
open_session(const char *conninfo)
{
	PGconn	   *conn = PQconnectdb(conninfo);

	if (PQstatus(conn) != CONNECTION_OK)
		die("%s", PQerrorMessage(conn));
	return conn;
}

static void
open_client(Client *client, const Variant *variant, int number)
{
	char		sql[128];

	client->variant = variant;
	client->conn = open_session(variant->conninfo);
	client->nrows = nrows / nclients;
	client->first = 1 + number * client->nrows;
	client->random = 88172645463325252ULL + number;
	snprintf(sql, sizeof(sql), "SET search_path = \"%s\", public", variant->name);
	check(client->conn, PQexec(client->conn, sql), sql);
	if (on_connect != NULL)
		check(client->conn, PQexec(client->conn, on_connect), on_connect);
	for (int i = 0; i < variant->nstatements; i++)
		check(client->conn,
			  PQprepare(client->conn, variant->statements[i].name, variant->statements[i].sql,
						variant->statements[i].nparams, variant->statements[i].types),
			  variant->name);
}

static long
next_row(Client *client)
{
	client->random ^= client->random << 13;
	client->random ^= client->random >> 7;
	client->random ^= client->random << 17;
	if (stride > 0)
		return client->first + stride * client->position++ % client->nrows;
	return client->first + client->random % client->nrows;
}

/* Higher with every call, and than in any run before. */
static long long
next_token(void)
{
	static _Atomic long long last;
	struct timespec t;

	if (last == 0)
	{
		clock_gettime(CLOCK_REALTIME, &t);
		last = t.tv_sec * 1000000LL;
	}
	return ++last;
}

static void
write_value(char *out, enum Value value, const Client *client, long row)
{
	long		batch = nbatches > nrows ? row * (nbatches / nrows) : row % nbatches;
	int			v = row % 1000 + client->ops % 1000;

	switch (value)
	{
		case ID:
			sprintf(out, "%ld", row);
			break;
		case BATCH:
			sprintf(out, "%ld", batch);
			break;
		case RESOURCE:
			sprintf(out, "%s:batch-%ld", client->variant->name, batch);
			break;
		case KEY:
			sprintf(out, "{\"id\": %ld}", row);
			break;
		case CHANGES:
			sprintf(out, "{\"v\": %d}", v);
			break;
		case V:
			sprintf(out, "%d", v);
			break;
		case TOKEN:
			strcpy(out, "5");
			break;
		case NEXT:
			sprintf(out, "%lld", next_token());
			break;
		case NVALUES:
			break;
	}
}

static void
run_operation(Client *client)
{
	long		row = next_row(client);

	for (int i = 0; i < client->variant->nstatements; i++)
	{
		const Statement *statement = &client->variant->statements[i];
		char		values[MAX_PARAMS][VALUE_SIZE];
		const char *pointers[MAX_PARAMS];

		for (int p = 0; p < statement->nparams; p++)
		{
			write_value(values[p], statement->params[p], client, row);
			pointers[p] = values[p];
		}
		check(client->conn, PQexecPrepared(client->conn, statement->name, statement->nparams,
										   pointers, NULL, NULL, 0), client->variant->name);
	}
	client->ops++;
}

static void *
run_client(void *arg)
{
	Client	   *client = arg;

	client->ops = 0;
	while (client->ops < ops_wanted)
		run_operation(client);
	return NULL;
}

/* ---------------------------------------------------------------- slices */

/* The CPU seconds of a process so far. */
static double
cpu_of(int pid)
{
	char		path[64];
	FILE	   *in;
	unsigned long long nanoseconds = 0;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	in = fopen(path, "r");
	if (in == NULL || fscanf(in, "%llu", &nanoseconds) != 1)
		die("cannot read %s", path);
	fclose(in);
	return nanoseconds / 1e9;
}

static Usage
read_usage(const Variant *variant)
{
	Usage		usage = {0};
	PGresult   *result = PQexec(monitor,
								"SELECT pg_current_wal_insert_lsn() - '0/0', mxid_age('1')");

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		die("%s", PQerrorMessage(monitor));
	usage.wal = atoll(PQgetvalue(result, 0, 0));
	usage.multixacts = atoll(PQgetvalue(result, 0, 1));
	PQclear(result);
	for (int i = 0; i < nclients; i++)
		usage.cpu += cpu_of(PQbackendPID(variant->clients[i].conn));
	usage.seconds = now();
	return usage;
}

static void
run_on_first(const Variant *variant, const char *sql)
{
	if (sql != NULL)
		check(variant->clients[0].conn, PQexec(variant->clients[0].conn, sql), sql);
}

static long
run_clients(const Variant *variant)
{
	pthread_t	threads[MAX_CLIENTS];
	long		ops = 0;

	for (int i = 0; i < nclients; i++)
		pthread_create(&threads[i], NULL, run_client, &variant->clients[i]);
	for (int i = 0; i < nclients; i++)
	{
		pthread_join(threads[i], NULL);
		ops += variant->clients[i].ops;
	}
	return ops;
}

static void
run_slice(const Variant *variant, int round)
{
	Usage		before;
	Usage		after;
	long		ops;

	run_on_first(variant, before_slice);
	before = read_usage(variant);
	ops = run_clients(variant);
	after = read_usage(variant);
	run_on_first(variant, after_slice);
	printf("%s,%d,%d,%d,%ld,%.6f,%.6f,%lld,%lld\n", variant->name, round, nclients,
		   PQbackendPID(variant->clients[0].conn), ops, after.seconds - before.seconds,
		   after.cpu - before.cpu, after.wal - before.wal, after.multixacts - before.multixacts);
}

/* Bring caches, plans and pages into the state in which they stay. */
static void
warm(const Variant *variant)
{
	long		wanted = ops_wanted;

	ops_wanted = warm_up;
	(void) run_clients(variant);
	ops_wanted = wanted;
}

static void
usage(void)
{
	fputs("usage: client [OPTION...] VARIANT.sql...\n"
		  "  -c CLIENTS  -r ROUNDS  -i ROWS  -m RESOURCES\n"
		  "  -n OPERATIONS                of a slice, each client\n"
		  "  -w OPERATIONS                beforehand, each client\n"
		  "  -e N                         every Nth row by turns, and not any at random\n"
		  "  -x FILE                      what every variant runs, instead of its own statements\n"
		  "  -s SQL                       at the start of each session\n"
		  "  -b SQL, -a SQL               before and after each slice, in its first session\n", stderr);
	exit(2);
}

int
main(int argc, char **argv)
{
	static Variant variants[MAX_VARIANTS];
	int			nvariants;
	int			option;

	while ((option = getopt(argc, argv, "c:r:i:m:n:w:e:x:s:b:a:")) != -1)
	{
		switch (option)
		{
			case 'c': nclients = atoi(optarg); break;
			case 'r': nrounds = atoi(optarg); break;
			case 'i': nrows = atol(optarg); break;
			case 'm': nbatches = atol(optarg); break;
			case 'n': ops_wanted = atol(optarg); break;
			case 'w': warm_up = atol(optarg); break;
			case 'e': stride = atol(optarg); break;
			case 'x': statements_of = optarg; break;
			case 's': on_connect = optarg; break;
			case 'b': before_slice = optarg; break;
			case 'a': after_slice = optarg; break;
			default: usage();
		}
	}
	nvariants = argc - optind;
	if (nvariants < 1 || nvariants > MAX_VARIANTS || nclients < 1 || nclients > MAX_CLIENTS ||
		nrows < nclients || nbatches < 1)
		usage();

	setvbuf(stdout, NULL, _IOLBF, 0);
	monitor = open_session("");
	for (int v = 0; v < nvariants; v++)
	{
		read_variant(&variants[v], argv[optind + v]);
		variants[v].clients = calloc(nclients, sizeof(Client));
		for (int i = 0; i < nclients; i++)
			open_client(&variants[v].clients[i], &variants[v], i);
		warm(&variants[v]);
	}
	/* no variant always comes after the same other one */
	for (int round = 0; round < nrounds; round++)
		for (int v = 0; v < nvariants; v++)
			run_slice(&variants[(v + round) % nvariants], round);
	return 0;
}
