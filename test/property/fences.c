/*
 * fences.c
 *		What is written to, and which ways there are to do it.
 */
#include "property.h"

#include <stdio.h>
#include <string.h>

const FenceInfo fences[N_FENCES] = {
	[FENCE_ROW] = {
		.name = "row", .table = "row_fence", .attach = "", .has_column = true, .slots = FENCE_ROW
	},
	[FENCE_TICKET] = {
		.name = "ticket", .table = "ticket", .attach = ", repeat => 'reject'",
		.has_column = true, .single_use = true, .slots = FENCE_TICKET
	},
	[FENCE_BATCH] = {
		.name = "batch", .table = "batch", .resource = "settle:batch-%d",
		.attach = ", 'settle:batch-{id}', token_column => 'fence'",
		.has_column = true, .slots = FENCE_BATCH
	},
	[FENCE_NOTE] = {
		.name = "note", .table = "note", .resource = "settle:batch-%d",
		.attach = ", 'settle:batch-{id}'", .slots = FENCE_BATCH
	},
	[FENCE_ORM] = {
		.name = "orm", .table = "orm", .resource = "settle:batch-%d",
		.attach = ", 'settle:batch-{id}', token_column => 'fence', accept => 'presented'",
		.has_column = true, .presented_only = true, .slots = FENCE_BATCH
	},
	[FENCE_PART] = {
		.name = "part", .table = "part", .resource = "part {%d}",
		.attach = ", 'part {{{id}}}', token_column => 'fence'",
		.has_column = true, .slots = FENCE_PART
	},
	[FENCE_ONCE] = {
		.name = "once", .table = "once", .resource = "once:%d",
		.attach = ", 'once:{id}', repeat => 'reject'", .single_use = true, .slots = FENCE_ONCE
	},
	[FENCE_JOB] = {
		.name = "job", .table = "job_%d", .resource = "jobs/nightly-%d",
		.attach = ", 'jobs/nightly-%d'", .slots = FENCE_JOB
	},
	[FENCE_LEDGER] = {
		.name = "ledger", .table = "ledger_%d", .resource = "jobs/ledger-%d",
		.attach = ", 'jobs/ledger-%d', token_column => 'fence'",
		.has_column = true, .slots = FENCE_LEDGER
	},
};

const char *const carrier_names[N_CARRIERS] = {
	"resource", "ambient", "column", "argument", "nothing", "conflict"
};

const char *const verb_names[N_VERBS] = {
	"present", "update", "insert", "upsert", "delete", "merge", "copy", "move", "truncate", "raise", "reset", "issue", "crash"
};

const char *const isolation_names[N_ISOLATIONS] = {
	"read committed", "repeatable read", "serializable"
};

/* Constant fences have a table a resource: two will do. */
int
fence_resources(const Options *opt, FenceKind kind)
{
	if ((kind == FENCE_JOB || kind == FENCE_LEDGER) && opt->resources > 2)
		return 2;
	return opt->resources;
}

/* The text is good until the call after the next. */
static const char *
numbered(const char *format, int n)
{
	static char text[2][TEXT_LEN];
	static int	turn;

	turn = !turn;
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text[turn], TEXT_LEN, format, n);
	return text[turn];
}

const char *
resource_name(FenceKind kind, int resource)
{
	return numbered(fences[kind].resource, resource);
}

const char *
table_name(FenceKind kind, int resource)
{
	return numbered(fences[kind].table, resource);
}

/* Can this fence be written to in this way? */
bool
fence_allows(const Options *opt, FenceKind kind, Carrier carrier, Verb verb)
{
	const FenceInfo *fence = &fences[kind];

	if (!(opt->verb_mask & (1u << verb)) || verb >= VERB_RAISE)
		return false;
	if (verb == VERB_MERGE && opt->server_version < 150000)
		return false;
	if (verb == VERB_MOVE &&
		(fence->resource == NULL || strchr(fence->table, '%') || opt->resources < 2))
		return false;
	if (verb == VERB_TRUNCATE && strchr(fence->table, '%') == NULL)
		return false;

	switch (carrier)
	{
		case CARRY_RESOURCE:
			return fence->resource != NULL;
		case CARRY_AMBIENT:
			return verb != VERB_PRESENT;
		case CARRY_COLUMN:
			return fence->has_column && !fence->presented_only && verb != VERB_PRESENT && verb != VERB_DELETE &&
				verb != VERB_TRUNCATE;
		case CARRY_ARGUMENT:
			return verb == VERB_UPDATE || verb == VERB_DELETE;
		case CARRY_NOTHING:
			return verb == VERB_UPDATE || verb == VERB_DELETE;
		case CARRY_CONFLICT:
			return verb == VERB_UPDATE && fence->has_column && fence->resource != NULL &&
				!fence->presented_only;
		default:
			return false;
	}
}
