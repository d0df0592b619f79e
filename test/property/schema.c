/*
 * schema.c
 *		Tables, fences and the slot.
 */
#include "property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef STANDINS
#define STANDINS "noguard.sql"
#endif

/* Run an SQL file in place of CREATE EXTENSION. */
static void
run_file(PGconn *conn, const char *path)
{
	static char text[64 * 1024];
	FILE	   *file = fopen(path, "r");
	size_t		len = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	PGresult   *result;

	if (len == 0)
	{
		fprintf(stderr, "property: cannot read %s\n", path);
		exit(2);
	}
	fclose(file);
	text[len] = '\0';
	result = PQexec(conn, text);
	if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		fprintf(stderr, "property: %s: %s", path, PQerrorMessage(conn));
		exit(2);
	}
	PQclear(result);
}

static void
create_guard(PGconn *conn, const Options *opt)
{
	if (strcmp(opt->guard, "lockfence") == 0)
		PQclear(must(conn, "CREATE EXTENSION lockfence"));
	else
		run_file(conn, opt->guarded ? opt->guard : STANDINS);
}

/*
 * An application's role: it owns nothing and may do what applications do.
 * Preemption is the administrator's to switch on, for the role.
 */
static void
grant_to_app(PGconn *conn, const Options *opt)
{
	PQclear(must(conn,
				 "DO $$ BEGIN "
				 "  IF pg_catalog.to_regrole('property_app') IS NULL THEN CREATE ROLE property_app LOGIN; END IF; "
				 "END $$; "
				 "GRANT USAGE ON SCHEMA lockfence TO property_app; "
				 "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA public TO property_app; "
				 "DO $$ DECLARE f regprocedure; BEGIN "
				 "  FOR f IN SELECT oid FROM pg_catalog.pg_proc WHERE pronamespace = 'lockfence'::regnamespace "
				 "           AND proname IN ('present', 'issue', 'guarded_update', 'guarded_delete') LOOP "
				 "    EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %%s TO property_app', f); "
				 "  END LOOP; "
				 "END $$"));
	PQclear(must(conn, "ALTER ROLE property_app SET lockfence.preempt = %s", opt->preempt ? "on" : "off"));
}

static void
create_table(PGconn *conn, const Options *opt, FenceKind kind, int resource)
{
	const char *table = table_name(kind, resource);
	char		arguments[TEXT_LEN];

	PQclear(must(conn, "CREATE TABLE %s (id int, line int, val int NOT NULL, life bigint NOT NULL, "
				 "PRIMARY KEY (id, line))%s", table,
				 kind == FENCE_PART ? " PARTITION BY RANGE (line)" : ""));
	if (kind == FENCE_PART)
		PQclear(must(conn, "CREATE TABLE part_lo PARTITION OF part FOR VALUES FROM (MINVALUE) TO (%d); "
					 "CREATE TABLE part_hi PARTITION OF part FOR VALUES FROM (%d) TO (MAXVALUE)",
					 SHARED_LINES / 2, SHARED_LINES / 2));
	PQclear(must(conn, "INSERT INTO %s SELECT id, line, 0, -1 FROM pg_catalog.generate_series(0, %d) id, "
				 "pg_catalog.generate_series(0, %d) line", table, opt->resources - 1, SHARED_LINES - 1));

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(arguments, sizeof(arguments), fences[kind].attach, resource);
	PQclear(must(conn, "SELECT lockfence.attach('%s'%s)", table, arguments));
}

void
schema_create(PGconn *conn, const Options *opt)
{
	int			kind;
	int			i;

	create_guard(conn, opt);
	PQclear(must(conn, "CREATE TABLE accepted (resource text, token bigint, path text, "
				 "worker int, seq bigint, level text)"));
	for (kind = 0; kind < N_FENCES; kind++)
	{
		int			n = strchr(fences[kind].table, '%') ? fence_resources(opt, kind) : 1;

		for (i = 0; i < n && (opt->fence_mask & (1u << kind)); i++)
			create_table(conn, opt, kind, i);
	}
	grant_to_app(conn, opt);
	PQclear(must(conn, "SELECT pg_catalog.pg_create_logical_replication_slot('%s', 'test_decoding')",
				 slot_name()));
}

/* Slots belong to the cluster, so each run has a name of its own. */
const char *
slot_name(void)
{
	static char name[32];

	if (name[0] == '\0')
		snprintf(name, sizeof(name), "property_%d", (int) getpid());
	return name;
}

void
schema_drop_slot(PGconn *conn)
{
	PQclear(must(conn, "SELECT pg_catalog.pg_drop_replication_slot('%s')", slot_name()));
}
