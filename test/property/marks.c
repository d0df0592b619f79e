/*
 * marks.c
 *		Marks and stored tokens after the run.
 */
#include "property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Present a token and roll back.  Returns the SQLSTATE of a refusal, or "" and
 * the mark as it was (0: none).
 */
static const char *
try_token(PGconn *conn, const char *resource, Token token, Token *mark)
{
	static char state[6];
	char		sql[256];
	PGresult   *result;

	PQclear(must(conn, "BEGIN"));
	snprintf(sql, sizeof(sql), "SELECT lockfence.present('%s', %lld)", resource, (long long) token);
	result = PQexec(conn, sql);
	state[0] = '\0';
	*mark = 0;
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		snprintf(state, sizeof(state), "%s", PQresultErrorField(result, PG_DIAG_SQLSTATE));
	else if (!PQgetisnull(result, 0, 0))
		*mark = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	PQclear(must(conn, "ROLLBACK"));
	return state;
}

/*
 * The mark of a resource covers all that was accepted for it and all whose
 * COMMIT a worker saw confirmed, be it as a mark or, pruned, by the floor.
 */
static bool
mark_is_right(PGconn *conn, Shared *shm, const char *resource, Token confirmed)
{
	Token		highest = oracle_highest(resource);
	Token		far = highest + 1000000000;
	Token		mark;
	const char *state;
	bool		pruned = atomic_load(&shm->prunes) > 0;

	if (confirmed > highest)
	{
		printf("  %s: token %lld was acknowledged and is lost\n", resource, (long long) confirmed);
		return false;
	}
	if (highest == 0)
		return true;
	if (strcmp(try_token(conn, resource, highest - 1, &mark), "LF001") != 0)
	{
		printf("  %s: token %lld is accepted after %lld\n", resource,
			   (long long) highest - 1, (long long) highest);
		return false;
	}
	state = try_token(conn, resource, highest, &mark);
	if (state[0] && !(pruned && strcmp(state, "LF001") == 0))
	{
		printf("  %s: token %lld, the highest accepted, is refused (%s)\n", resource,
			   (long long) highest, state);
		return false;
	}
	state = try_token(conn, resource, far, &mark);
	if (state[0] || (mark < highest && !(mark == 0 && pruned)))
	{
		printf("  %s: mark is %lld where %lld was accepted (%s)\n", resource, (long long) mark,
			   (long long) highest, state);
		return false;
	}
	return true;
}

/* Number of resources that a lower token than the acknowledged one could write to after a crash. */
long
marks_behind(PGconn *conn, Shared *shm, int crash)
{
	long		behind = 0;
	int			kind;
	int			i;

	for (kind = 0; kind < N_FENCES; kind++)
		for (i = 0; i < shm->opt.resources && fences[kind].resource != NULL; i++)
		{
			Token		acknowledged = shm->at_crash[crash][kind][i];
			PGresult   *result;

			if (kind == RESET_FENCE || acknowledged <= 1)
				continue;
			result = must(conn, "SELECT lockfence.is_current('%s', %lld)",
						  resource_name(kind, i), (long long) acknowledged - 1);
			if (strcmp(PQgetvalue(result, 0, 0), "f") != 0)
			{
				printf("  behind after crash %d: %s, token %lld was acknowledged\n", crash + 1,
					   resource_name(kind, i), (long long) acknowledged);
				fflush(stdout);
				behind++;
			}
			PQclear(result);
		}
	return behind;
}

static bool
was_reset(Shared *shm, FenceKind kind)
{
	return kind == RESET_FENCE && atomic_load(&shm->resets) > 0;
}

/* Number of named resources whose mark is wrong. */
long
marks_wrong(PGconn *conn, Shared *shm)
{
	const Options *opt = &shm->opt;
	long		wrong = 0;
	int			kind;
	int			i;

	for (kind = 0; kind < N_FENCES; kind++)
	{
		if (!(opt->fence_mask & (1u << kind)) || fences[kind].resource == NULL)
			continue;
		for (i = 0; i < fence_resources(opt, kind); i++)
		{
			Grants	   *grants = &shm->grants[fences[kind].slots][i];
			char		resource[TEXT_LEN];

			snprintf(resource, sizeof(resource), "%s", resource_name(kind, i));
			/* a reset takes back what was confirmed before it */
			if (!mark_is_right(conn, shm, resource, was_reset(shm, kind) ? 0 :
							   atomic_load(&grants->acknowledged)))
				wrong++;
		}
	}
	return wrong;
}

/* Where a row is a resource its token is the mark; elsewhere it is not above it. */
static bool
row_is_right(FenceKind kind, int resource_of_table, PGresult *rows, int i)
{
	bool		constant = strchr(fences[kind].table, '%') != NULL;

	char		resource[TEXT_LEN];
	Token		stored = strtoll(PQgetvalue(rows, i, 3), NULL, 10);
	Token		highest;

	if (fences[kind].resource != NULL)
		snprintf(resource, sizeof(resource), "%s",
				 resource_name(kind, constant ? resource_of_table :
							   (int) strtol(PQgetvalue(rows, i, 0), NULL, 10)));
	else
		snprintf(resource, sizeof(resource), "%s:%s/%s/%s", fences[kind].name, PQgetvalue(rows, i, 0),
				 PQgetvalue(rows, i, 1), PQgetvalue(rows, i, 2));
	highest = oracle_highest(resource);
	if (fences[kind].resource == NULL ? stored == highest : stored <= highest)
		return true;
	printf("  %s: a row carries %lld where %lld was accepted\n", resource,
		   (long long) stored, (long long) highest);
	return false;
}

static long
table_rows_wrong(PGconn *conn, FenceKind kind, int resource)
{
	PGresult   *rows = must(conn, "SELECT id, line, life, fence FROM %s WHERE fence IS NOT NULL",
							table_name(kind, resource));
	long		wrong = 0;
	int			i;

	for (i = 0; i < PQntuples(rows); i++)
		if (!row_is_right(kind, resource, rows, i))
			wrong++;
	PQclear(rows);
	return wrong;
}

/* Number of rows whose stored token cannot be. */
long
rows_wrong(PGconn *conn, Shared *shm)
{
	const Options *opt = &shm->opt;
	long		wrong = 0;
	int			kind;
	int			i;

	for (kind = 0; kind < N_FENCES; kind++)
	{
		int			n = strchr(fences[kind].table, '%') ? fence_resources(opt, kind) : 1;

		if ((opt->fence_mask & (1u << kind)) && fences[kind].has_column &&
			!was_reset(shm, kind))
			for (i = 0; i < n; i++)
				wrong += table_rows_wrong(conn, kind, i);
	}
	return wrong;
}
