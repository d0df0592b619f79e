/*
 * statements.c
 *		The statements that write.
 *
 * All fenced tables have the same columns, so that one text does for each:
 *		id		the resource
 *		line	which row of it: 0..3 are shared, 1000.. are written once
 *		val		something to update
 *		life	the row's incarnation, for fences that end with the row
 *		fence	the token, where there is such a column
 */
#include "property.h"

#include <stdio.h>
#include <string.h>

#define FRESH_LINES 1000

/* ---- parts of statements ---- */

/* The table, or the very partition. */
static const char *
target(Worker *w, const Write *x)
{
	if (x->kind == FENCE_PART && x->verb != VERB_COPY && chance(w, 30))
		return x->line < SHARED_LINES / 2 ? "part_lo" : "part_hi";
	return table_name(x->kind, x->resource);
}

/*
 * The token that the statement writes to the token column; 0: it does not.
 * Where the column is no proof, it is as an ORM would write it: a wrong one.
 */
static Token
column_token(const Write *x)
{
	if (fences[x->kind].presented_only)
		return x->token + 1;
	if (x->carrier == CARRY_COLUMN)
		return x->token;
	return x->carrier == CARRY_CONFLICT ? x->token + 1 : 0;
}

/* ", fence", ", fence = ..." and the like, if the column carries the token. */
static const char *
if_column(const Write *x, const char *before, bool with_token)
{
	static char text[3][TEXT_LEN];
	static int	turn;
	Token		token = column_token(x);

	turn = (turn + 1) % 3;
	if (token == 0)
		text[turn][0] = '\0';
	else if (with_token)
		snprintf(text[turn], TEXT_LEN, "%s%lld", before, (long long) token);
	else
		snprintf(text[turn], TEXT_LEN, "%s", before);
	return text[turn];
}

static const char *
returning(const Write *x)
{
	return fences[x->kind].has_column ? "line, life, fence" : "line, life, NULL";
}

static int64_t
new_life(Worker *w)
{
	return ((int64_t) w->id << 40) + ++w->seq;
}

/* A line that no session has written to before. */
int
fresh_line(Worker *w)
{
	return FRESH_LINES + (w->id << 24) + (int) (++w->seq & 0xFFFFFF);
}

/*
 * Read back the rows that were written by a statement without RETURNING.  This
 * transaction reads them itself, since it still holds them.
 */
static bool
log_lines(Worker *w, const Write *x, int first, int last)
{
	PGresult   *result;

	w->may = MAY_CLASH;
	result = attempt(w, "SELECT %s FROM %s WHERE id = %d AND line BETWEEN %d AND %d", returning(x),
					 table_name(x->kind, x->resource), x->resource, first, last);
	return result != NULL && log_rows(w, x, result);
}

/* ---- the statements ---- */

static bool
do_update(Worker *w, const Write *x)
{
	char		where[64] = "";
	const char *change = "";
	const char *table = target(w, x);
	PGresult   *result;

	if (x->kind == FENCE_PART && chance(w, 20) && !w->opt->documented)
		change = ", line = 3 - line";	/* into the other partition */
	else if (!chance(w, 10) || w->opt->documented)
		snprintf(where, sizeof(where), " AND line = %d", x->line);
	if (change[0])
		snprintf(where, sizeof(where), " AND line = %d AND line < %d", x->line, SHARED_LINES);
	if (change[0])
		table = "part";

	result = attempt(w, "UPDATE %s SET val = val + 1%s%s WHERE id = %d%s RETURNING %s",
					 table, change, if_column(x, ", fence = ", true), x->resource, where,
					 returning(x));
	return result != NULL && log_rows(w, x, result);
}

static bool
do_insert(Worker *w, const Write *x)
{
	PGresult   *result;

	result = attempt(w, "INSERT INTO %s (id, line, val, life%s) VALUES (%d, %d, 0, %lld%s) RETURNING %s",
					 target(w, x), if_column(x, ", fence", false), x->resource, x->line,
					 (long long) new_life(w), if_column(x, ", ", true), returning(x));
	return result != NULL && log_rows(w, x, result);
}

/*
 * ON CONFLICT DO UPDATE need not mention the token again, except where the
 * INSERT half could not know which row it was about.
 */
static bool
do_upsert(Worker *w, const Write *x)
{
	const char *table = target(w, x);
	bool		again = fences[x->kind].resource == NULL || chance(w, 50);
	PGresult   *result;

	result = attempt(w, "INSERT INTO %s AS t (id, line, val, life%s) VALUES (%d, %d, 0, %lld%s) "
					 "ON CONFLICT (id, line) DO UPDATE SET val = t.val + 1%s RETURNING %s",
					 table, if_column(x, ", fence", false), x->resource, x->line,
					 (long long) new_life(w), if_column(x, ", ", true),
					 again ? if_column(x, ", fence = excluded.fence", false) : "",
					 returning(x));
	return result != NULL && log_rows(w, x, result);
}

/* A shared row, or all that were written once, which keeps the tables small. */
static bool
do_delete(Worker *w, const Write *x)
{
	bool		tidy = chance(w, 60) && !w->opt->documented;
	PGresult   *result;

	result = attempt(w, "DELETE FROM %s WHERE id = %d AND line %s %d RETURNING %s",
					 tidy ? table_name(x->kind, x->resource) : target(w, x), x->resource,
					 tidy ? ">=" : "=", tidy ? FRESH_LINES : x->line, returning(x));
	return result != NULL && log_rows(w, x, result);
}

static bool
do_merge(Worker *w, const Write *x)
{
	PGresult   *result;

	result = attempt(w, "MERGE INTO %s t USING (VALUES (%d, %d)) s (id, line) "
					 "ON t.id = s.id AND t.line = s.line "
					 "WHEN MATCHED THEN UPDATE SET val = t.val + 1%s "
					 "WHEN NOT MATCHED THEN INSERT (id, line, val, life%s) VALUES (s.id, s.line, 0, %lld%s)",
					 target(w, x), x->resource, x->line, if_column(x, ", fence = ", true),
					 if_column(x, ", fence", false), (long long) new_life(w),
					 if_column(x, ", ", true));
	if (result == NULL)
		return false;
	PQclear(result);
	return log_lines(w, x, x->line, x->line);
}

/* A few lines for one resource, numbered in a row. */
static bool
do_copy(Worker *w, const Write *x)
{
	char		command[TEXT_LEN];
	char		rows[SQL_LEN];
	int			first = fresh_line(w);
	int			last = first + pick(w, 4);
	int			len = 0;
	int			line;

	snprintf(command, sizeof(command), "COPY %s (id, line, val, life%s) FROM STDIN",
			 target(w, x), if_column(x, ", fence", false));
	/* each life counts w->seq up, so no later fresh line falls into this range */
	for (line = first; line <= last; line++)
		len += snprintf(rows + len, sizeof(rows) - (size_t) len, "%d\t%d\t0\t%lld%s\n",
						x->resource, line, (long long) new_life(w), if_column(x, "\t", true));
	return attempt_copy(w, command, rows) && log_lines(w, x, first, last);
}

/* The row's incarnation as a resource, before it is gone; false: none is there. */
static bool
find_life(Worker *w, const Write *x, char *resource)
{
	PGresult   *row = attempt(w, "SELECT life FROM %s WHERE id = %d AND line = %d FOR UPDATE",
							  table_name(x->kind, x->resource), x->resource, x->line);
	bool		found = row != NULL && PQntuples(row) > 0;

	if (found)
		snprintf(resource, TEXT_LEN, "%s:%d/%d/%s", fences[x->kind].name, x->resource, x->line, PQgetvalue(row, 0, 0));
	PQclear(row);
	return found;
}

/*
 * guarded_update(), guarded_delete().  The token is accepted, or not, also
 * where the resource has no such row; then it was merely presented.
 */
static bool
do_guarded(Worker *w, const Write *x)
{
	bool		named = fences[x->kind].resource != NULL;
	bool		update = x->verb == VERB_UPDATE;
	Write		y = *x;
	char		resource[TEXT_LEN];
	PGresult   *result;

	if (named)
		snprintf(resource, sizeof(resource), "%s", resource_name(x->kind, x->resource));
	else if (!update && !find_life(w, x, resource))
		return false;

	result = attempt(w, "SELECT lockfence.guarded_%s('%s', '{\"id\": %d, \"line\": %d}'%s, %lld)",
					 verb_names[x->verb], table_name(x->kind, x->resource), x->resource, x->line,
					 update ? ", '{\"val\": 7}'" : "", (long long) x->token);
	if (result == NULL)
		return false;
	if (strcmp(PQgetvalue(result, 0, 0), "0") == 0)
		y.verb = VERB_PRESENT;
	PQclear(result);

	if (y.verb == VERB_PRESENT && !named)
		return true;
	if (y.verb == VERB_UPDATE)
		return log_lines(w, x, x->line, x->line);
	return log_acceptance(w, &y, resource);
}

/* A row changes its resource: both are checked, both are logged. */
static bool
do_move(Worker *w, const Write *x, int from)
{
	Write		old = *x;
	PGresult   *result;
	bool		moved;

	result = attempt(w, "UPDATE %s SET id = %d%s WHERE id = %d AND line = %d RETURNING %s",
					 table_name(x->kind, x->resource), x->resource,
					 if_column(x, ", fence = ", true), from, x->line, returning(x));
	if (result == NULL)
		return false;
	moved = PQntuples(result) > 0;
	old.resource = from;
	return log_rows(w, x, result) && moved &&
		log_acceptance(w, &old, resource_name(x->kind, from));
}

static bool
do_truncate(Worker *w, const Write *x)
{
	PGresult   *result = attempt(w, "TRUNCATE %s", table_name(x->kind, x->resource));

	PQclear(result);
	return result != NULL &&
		log_acceptance(w, x, resource_name(x->kind, x->resource));
}

/* What the data rows may do to the statement, whatever the fence does. */
static int
statement_risks(const Worker *w, const Write *x)
{
	int			may = w->txn.mixed || x->carrier == CARRY_CONFLICT ? MAY_CONFLICT : 0;

	if (x->carrier == CARRY_NOTHING)
		may |= MUST_MISS;
	if (w->opt->documented)
		return may;
	if (x->verb != VERB_INSERT && x->verb != VERB_COPY)
		may |= MAY_CLASH;
	if (x->verb == VERB_INSERT || x->verb == VERB_MERGE || x->verb == VERB_MOVE ||
		(x->verb == VERB_UPDATE && x->kind == FENCE_PART))
		may |= MAY_DUPLICATE;
	return may;
}

/* Run the write, and log it if it is accepted. */
bool
execute_write(Worker *w, const Write *x, int from)
{
	w->may = statement_risks(w, x);
	if (x->carrier == CARRY_ARGUMENT)
		return do_guarded(w, x);
	switch (x->verb)
	{
		case VERB_UPDATE:
			return do_update(w, x);
		case VERB_INSERT:
			return do_insert(w, x);
		case VERB_UPSERT:
			return do_upsert(w, x);
		case VERB_DELETE:
			return do_delete(w, x);
		case VERB_MERGE:
			return do_merge(w, x);
		case VERB_COPY:
			return do_copy(w, x);
		case VERB_MOVE:
			return do_move(w, x, from);
		case VERB_TRUNCATE:
			return do_truncate(w, x);
		default:
			return true;
	}
}
