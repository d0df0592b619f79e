/*
 * oracle.c
 *		The log in commit order, judged.
 *
 * Commit order is the order of the commit records in the WAL, and logical
 * decoding hands transactions out in exactly that order, each with the rows
 * that survived its savepoints, a prepared one at its COMMIT PREPARED, one that
 * never committed not at all.  A server writes the commit record before it
 * releases the transaction's locks, so if one accepted write had to wait for
 * another its record comes later; commit timestamps and snapshots promise no
 * such thing.  Within a transaction rows come in the order of writing.  So one
 * running maximum a resource judges both.
 */
#include "property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_VIOLATIONS 10

/* A row of the log. */
typedef struct Entry
{
	char		resource[80];
	long long	token;
	char		path[80];
	char		level[32];
	int			worker;
	long long	seq;
	char		xid[16];
	char		lsn[32];
	FenceKind	kind;
	Carrier		carrier;
	Verb		verb;
} Entry;

typedef struct Judged
{
	Entry		highest;		/* the accepted write that set the maximum */
	Entry		written;		/* the highest that was a write, not a present() */
} Judged;

static Judged *table;
static size_t table_size;
static size_t table_used;

/* The slot of a resource: an empty one if it is not there yet (FNV-1a). */
static Judged *
find_slot(const char *resource)
{
	uint64_t	hash = 0xCBF29CE484222325;
	const char *p;
	size_t		i;

	for (p = resource; *p; p++)
		hash = (hash ^ (unsigned char) *p) * 0x100000001B3;
	for (i = hash % table_size; table[i].highest.resource[0]; i = (i + 1) % table_size)
		if (strcmp(table[i].highest.resource, resource) == 0)
			break;
	return &table[i];
}

static void
grow_table(void)
{
	Judged	   *old = table;
	size_t		old_size = table_size;
	size_t		i;

	table_size = old_size ? old_size * 2 : 1024;
	table = calloc(table_size, sizeof(Judged));
	if (table == NULL)
		abort();
	for (i = 0; i < old_size; i++)
		if (old[i].highest.resource[0])
			*find_slot(old[i].highest.resource) = old[i];
	free(old);
}

static Judged *
judged_resource(const Entry *e)
{
	Judged	   *j;

	if (table_used * 2 >= table_size)
		grow_table();
	j = find_slot(e->resource);
	if (j->highest.resource[0] == '\0')
	{
		snprintf(j->highest.resource, sizeof(j->highest.resource), "%s", e->resource);
		table_used++;
	}
	return j;
}

/* Highest token that was accepted for the resource; 0: none. */
Token
oracle_highest(const char *resource)
{
	return table_size ? find_slot(resource)->highest.token : 0;
}

/* ---- reading ---- */

static int
index_of(const char *word, const char *const names[], int n)
{
	int			i;

	for (i = 0; i < n && strcmp(names[i], word) != 0; i++)
		;
	if (i == n)
	{
		fprintf(stderr, "property: unknown word in the log: %s\n", word);
		exit(2);
	}
	return i;
}

static void
parse_path(Entry *e)
{
	char		fence[32];
	char		carrier[32];
	char		verb[32];
	int			kind;

	if (sscanf(e->path, "%31s %31s %31s", fence, carrier, verb) != 3)
		abort();
	for (kind = 0; kind < N_FENCES - 1 && strcmp(fences[kind].name, fence) != 0; kind++)
		;
	e->kind = (FenceKind) kind;
	e->carrier = (Carrier) index_of(carrier, carrier_names, N_CARRIERS);
	e->verb = (Verb) index_of(verb, verb_names, N_VERBS);
}

/* As test_decoding prints it; false: something else than a row of the log. */
static bool
parse_entry(Entry *e, PGresult *row)
{
	const char *data = PQgetvalue(row, 0, 2);

	if (strncmp(data, "table public.accepted: INSERT:", 30) != 0)
		return false;
	if (sscanf(data, "table public.accepted: INSERT: resource[text]:'%79[^']' token[bigint]:%lld "
			   "path[text]:'%79[^']' worker[integer]:%d seq[bigint]:%lld level[text]:'%31[^']'",
			   e->resource, &e->token, e->path, &e->worker, &e->seq, e->level) != 6)
	{
		fprintf(stderr, "property: cannot read from the log: %s\n", data);
		exit(2);
	}
	snprintf(e->lsn, sizeof(e->lsn), "%s", PQgetvalue(row, 0, 0));
	snprintf(e->xid, sizeof(e->xid), "%s", PQgetvalue(row, 0, 1));
	parse_path(e);
	return true;
}

/* ---- judging ---- */

static void
show_entry(const char *what, const Entry *e)
{
	printf("    %-9s %lld  %s  worker %d, seq %lld, xid %s, at %s, %s\n", what, e->token, e->path,
		   e->worker, e->seq, e->xid, e->lsn, e->level);
}

/* Show what broke the property, and by which transactions, for pg_waldump. */
static void
show_violation(long *count, const char *what, const Entry *before, const Entry *e)
{
	if ((*count)++ >= SHOWN_VIOLATIONS)
		return;
	printf("  %s: %s\n", what, e->resource);
	show_entry("committed", before);
	show_entry("then", e);
}

/* A single-use token may write in one transaction only. */
static bool
used_again(const Judged *j, const Entry *e)
{
	return fences[e->kind].single_use && e->verb != VERB_PRESENT && e->verb != VERB_RAISE && e->verb != VERB_ISSUE &&
		e->token <= j->written.token && strcmp(j->written.xid, e->xid) != 0;
}

/*
 * An advance is committed synchronously even where synchronous_commit is off,
 * so by now the log must hold all that was acknowledged before that crash.
 */
static void
judge_crash(Verdict *verdict, Shared *shm, long long crash)
{
	int			kind;
	int			i;

	for (kind = 0; kind < N_FENCES; kind++)
		for (i = 0; i < shm->opt.resources && fences[kind].resource != NULL; i++)
		{
			Token		before = shm->at_crash[crash][kind][i];

			if (kind == RESET_FENCE || before <= oracle_highest(resource_name(kind, i)))
				continue;
			verdict->lost++;
			printf("  lost in crash %lld: %s, token %lld was acknowledged, %lld survived\n",
				   crash + 1, resource_name(kind, i), (long long) before,
				   (long long) oracle_highest(resource_name(kind, i)));
		}
}

static void
judge(Verdict *verdict, const Entry *e)
{
	Judged	   *j = judged_resource(e);

	verdict->accepted++;
	verdict->cells[e->kind][e->carrier][e->verb]++;
	verdict->by_isolation[index_of(e->level, isolation_names, N_ISOLATIONS)]++;

	if (e->verb == VERB_RESET)
		j->highest = j->written = *e;
	else if (e->token < j->highest.token)
		show_violation(&verdict->violations, "token goes down", &j->highest, e);
	else if (e->verb == VERB_ISSUE && e->token == j->highest.token)
		show_violation(&verdict->reissued, "token was there before it was issued", &j->highest, e);
	else if (used_again(j, e))
		show_violation(&verdict->reused, "single-use token writes again", &j->written, e);
	else if (e->token > j->highest.token)
	{
		verdict->advances++;
		j->highest = *e;
	}
	else if (e->worker != j->highest.worker)
		verdict->siblings++;

	if (e->verb == VERB_ISSUE)
		verdict->issued++;
	else if (e->verb != VERB_PRESENT && e->token >= j->written.token)
		j->written = *e;
}

/* Decode the run, row by row, and judge. */
void
oracle_judge(PGconn *conn, Shared *shm, Verdict *verdict)
{
	char		sql[256];
	char		last_xid[16] = "";
	PGresult   *row;
	Entry		e;

	snprintf(sql, sizeof(sql),
			 "SELECT lsn, xid, data FROM pg_catalog.pg_logical_slot_peek_changes('%s', NULL, NULL, "
			 "'skip-empty-xacts', '1') WHERE data LIKE 'table public.accepted:%%'", slot_name());
	if (!PQsendQuery(conn, sql) || !PQsetSingleRowMode(conn))
		abort();
	while ((row = PQgetResult(conn)) != NULL)
	{
		if (PQresultStatus(row) == PGRES_SINGLE_TUPLE && parse_entry(&e, row))
		{
			if (strcmp(last_xid, e.xid) != 0)
				verdict->transactions++;
			snprintf(last_xid, sizeof(last_xid), "%s", e.xid);
			if (e.verb == VERB_CRASH)
				judge_crash(verdict, shm, e.token);
			else
				judge(verdict, &e);
		}
		else if (PQresultStatus(row) != PGRES_TUPLES_OK)
		{
			fprintf(stderr, "property: decoding: %s", PQerrorMessage(conn));
			exit(2);
		}
		PQclear(row);
	}
}
