/*
 * guarded.c
 *		guarded_update(), guarded_delete() and guarded_insert(): token and write in one call.
 *
 * If the key determines the resource, its mark is checked first, so that a stale
 * token is refused even when no row matches, and so that mark and row are locked
 * in the order that the documentation teaches with present().  Else the row tells its
 * resource, and its guard decides.  If the statement finds no row because of other
 * conditions than a unique key, the row that has that key is locked and decides: a
 * stale token must not look like a row in another state.  The write itself
 * is an ordinary statement of the caller, with the caller's privileges and row
 * security.  The token counts for the rows that this statement writes, not for
 * what their triggers write elsewhere.
 *
 * If the executor would deny the statement for lack of privileges, it is denied
 * before anything is locked, asked or advanced.
 *
 * Values go from jsonb through the column's own input function into parameters.
 * Each backend keeps plans, by the statement's text, which qualifies all names,
 * and the types of its parameters.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/objectaddress.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "advisory.h"
#include "args.h"
#include "call.h"
#include "check.h"
#include "compat.h"
#include "fence.h"
#include "fencecache.h"
#include "fencedef.h"
#include "granted.h"
#include "guarded.h"
#include "jsonvalue.h"
#include "lockfence.h"
#include "presented.h"
#include "template.h"
#include "unwritten.h"
#include "visible.h"
#include "xact.h"

/* Plans beyond this number are not kept, but made for every call. */
#define MAX_PLANS 256

/* Longest statement, with its types, whose plan is kept, in bytes. */
#define MAX_PLAN_KEY 1024

typedef struct KeptPlan
{
	char		key[MAX_PLAN_KEY];	/* hash key */
	SPIPlanPtr	plan;
} KeptPlan;

/* One call. */
typedef struct GuardedCall
{
	Relation	rel;
	const Fence *fence;
	FenceToken	token;
	int			nkeys;
	GivenColumn *keys;
	AclMode		mode;			/* ACL_UPDATE, ACL_DELETE or ACL_INSERT */
	int			nchanges;		/* 0: a DELETE */
	GivenColumn *changes;		/* or the columns of the row to insert */
	bool		admitted;
	char	   *resource;		/* which the key determines; NULL: only the row does */
} GuardedCall;

/* The SQL statement of a call. */
typedef struct Statement
{
	char	   *text;
	SPIPlanPtr	plan;
	Datum	   *values;
	char	   *nulls;
} Statement;

PG_FUNCTION_INFO_V1(lockfence_guarded_update);
PG_FUNCTION_INFO_V1(lockfence_guarded_delete);
PG_FUNCTION_INFO_V1(lockfence_guarded_insert);

static HTAB *plans = NULL;

/* Begin a statement, up to its first parameter. */
static void
begin_statement(StringInfo statement, const GuardedCall *call, const char *table)
{
	appendStringInfo(statement, call->mode == ACL_UPDATE ? "UPDATE %s SET " :
					 call->mode == ACL_DELETE ? "DELETE FROM %s" : "INSERT INTO %s (", table);
	if (call->mode != ACL_INSERT)
		return;
	for (int i = 0; i < call->nchanges; i++)
		appendStringInfo(statement, "%s%s", i > 0 ? ", " : "", quote_identifier(call->changes[i].name));
	appendStringInfoString(statement, ") VALUES (");
}

/* The statement, and the type and value of each of its parameters. */
static char *
build_statement(const GuardedCall *call, int *nparams, Oid *types, Datum *values,
				char *nulls)
{
	StringInfoData statement;
	const char *table = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(call->rel)),
												   RelationGetRelationName(call->rel));
	int			n = 0;

	initStringInfo(&statement);
	begin_statement(&statement, call, table);
	for (int i = 0; i < call->nchanges; i++)
	{
		const GivenColumn *change = &call->changes[i];

		types[n] = change->type;
		values[n] = change->value;
		nulls[n++] = change->isnull ? 'n' : ' ';
		appendStringInfoString(&statement, i > 0 ? ", " : "");
		if (call->mode == ACL_UPDATE)
			appendStringInfo(&statement, "%s = ", quote_identifier(change->name));
		appendStringInfo(&statement, "$%d", n);
	}
	if (call->mode == ACL_INSERT)
		appendStringInfoChar(&statement, ')');
	for (int i = 0; i < call->nkeys; i++)
	{
		appendStringInfoString(&statement, i > 0 ? " AND " : " WHERE ");
		lockfence_append_key(&statement, &call->keys[i], n + 1);
		if (call->keys[i].isnull)
			continue;
		types[n] = call->keys[i].type;
		values[n] = call->keys[i].value;
		nulls[n++] = ' ';
	}
	*nparams = n;
	return statement.data;
}

/*
 * The key under which a plan is kept.  The same text needs another plan once a
 * column has changed its type; the first plan stays, since it may be running.
 */
static char *
plan_key(const char *statement, int nparams, const Oid *types)
{
	StringInfoData key;
	char		digits[MAXINT8LEN + 1];

	initStringInfo(&key);
	appendStringInfoString(&key, statement);
	for (int i = 0; i < nparams; i++)
	{
		pg_lltoa(types[i], digits);
		appendStringInfoChar(&key, ' ');
		appendStringInfoString(&key, digits);
	}
	return key.data;
}

/* Plan a statement, and keep the plan for its next call. */
static SPIPlanPtr
plan_statement(const char *statement, int nparams, Oid *types)
{
	const char *key = plan_key(statement, nparams, types);
	bool		is_short = strlen(key) < MAX_PLAN_KEY;
	KeptPlan   *kept = is_short ? hash_search(plans, key, HASH_FIND, NULL) : NULL;
	SPIPlanPtr	plan;

	if (kept != NULL)
		return kept->plan;

	plan = SPI_prepare(statement, nparams, types);
	if (plan == NULL)
		elog(ERROR, "could not plan \"%s\": %s", statement,
			 SPI_result_code_string(SPI_result));
	if (is_short && hash_get_num_entries(plans) < MAX_PLANS)
	{
		SPI_keepplan(plan);
		kept = hash_search(plans, key, HASH_ENTER, NULL);
		kept->plan = plan;
	}
	return plan;
}

/* Prepare the statement, so that errors in it are raised before the fence is asked. */
static Statement
prepare_statement(const GuardedCall *call)
{
	int			most = call->nchanges + call->nkeys;
	Oid		   *types = palloc(most * sizeof(Oid));
	Statement	statement = {
		.values = palloc(most * sizeof(Datum)),
		.nulls = palloc(most)
	};
	int			nparams;

	statement.text = build_statement(call, &nparams, types, statement.values,
									 statement.nulls);
	statement.plan = plan_statement(statement.text, nparams, types);
	return statement;
}

/* Run the statement; returns the number of rows. */
static uint64
run_statement(const Statement *statement)
{
	int			result = SPI_execute_plan(statement->plan, statement->values,
										  statement->nulls, false, 0);

	if (result != SPI_OK_UPDATE && result != SPI_OK_DELETE && result != SPI_OK_INSERT)
		elog(ERROR, "\"%s\" failed: %s", statement->text,
			 SPI_result_code_string(result));
	return SPI_processed;
}

/* Require the privileges on these columns, as the executor does. */
void
lockfence_require_column_privileges(Relation rel, AclMode mode, int ncolumns,
									const GivenColumn *columns)
{
	Oid			relid = RelationGetRelid(rel);
	bool		may = pg_class_aclcheck(relid, GetUserId(), mode) == ACLCHECK_OK;

	for (int i = 0; i < ncolumns && !may; i++)
	{
		if (pg_attribute_aclcheck(relid, columns[i].attno, GetUserId(), mode) != ACLCHECK_OK)
			aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(rel->rd_rel->relkind),
						   lockfence_visible(RelationGetRelationName(rel)));
	}
}

/* Require the privileges that the statement needs, before it has any effect. */
static void
require_privileges(const GuardedCall *call)
{
	lockfence_require_column_privileges(call->rel, ACL_SELECT, call->nkeys, call->keys);
	lockfence_require_column_privileges(call->rel, call->mode, call->nchanges, call->changes);
}

/* The resource, if the key, or the row to insert, determines its name. */
static char *
key_resource(const GuardedCall *call)
{
	int			natts = RelationGetNumberOfAttributes(call->rel);
	Datum	   *values = palloc0(natts * sizeof(Datum));
	bool	   *missing = palloc(natts * sizeof(bool));
	bool		is_insert = call->mode == ACL_INSERT;
	const GivenColumn *names = is_insert ? call->changes : call->keys;
	int			nnames = is_insert ? call->nchanges : call->nkeys;

	if (call->fence->resource == NULL)
		return NULL;
	memset(missing, true, natts * sizeof(bool));
	for (int i = 0; i < nnames; i++)
	{
		const GivenColumn *key = &names[i];

		values[key->attno - 1] = key->value;
		missing[key->attno - 1] = key->isnull;
	}
	return lockfence_values_resource(call->fence, values, missing);
}

/*
 * Check the token before the row is looked up.  If the key does not determine the
 * resource, only what else the transaction has presented can be checked.  It is
 * not admitted if an advisory fence refused it.
 */
static void
check_call(void *arg)
{
	GuardedCall *call = (GuardedCall *) arg;
	const char *resource = call->resource = key_resource(call);
	PresentedTokens tokens = lockfence_given_token(resource, call->token);
	FenceCheck	check = lockfence_fence_check(call->fence, call->rel, resource);
	FenceToken	previous;

	if (resource != NULL)
	{
		lockfence_present_grant_first(&check, call->token);
		call->admitted = lockfence_admit(&check, &tokens, &previous) != 0;
		lockfence_reveal_name(resource);
		return;
	}
	check.write.resource = call->fence->resource;
	call->admitted = lockfence_admit_tokens(&check, &tokens);
}

/* Check, and write. */
static uint64
guarded_write(GuardedCall *call)
{
	CallToken	token = {.token = call->token};
	Statement	statement;
	uint64		rows;

	require_privileges(call);
	lockfence_convert_columns(call->rel, call->keys, call->nkeys);
	lockfence_convert_columns(call->rel, call->changes, call->nchanges);
	SPI_connect();
	statement = prepare_statement(call);
	token.refused = !(lockfence_decide(call->rel, call->fence, check_call, call) && call->admitted);
	lockfence_begin_call(&token, call->rel);
	PG_TRY();
	{
		rows = run_statement(&statement);
	}
	PG_FINALLY();
	{
		lockfence_end_call(&token);
	}
	PG_END_TRY();
	SPI_finish();
	if (rows == 0 && call->resource == NULL && !token.refused)
	{
		UnwrittenCall unwritten = {
			.rel = call->rel,.fence = call->fence,.mode = call->mode,.token = call->token,
			.keys = call->keys,.nkeys = call->nkeys
		};

		(void) lockfence_decide(call->rel, call->fence, lockfence_admit_unwritten, &unwritten);
	}
	return rows;
}

/* Set one column of the rows that have the key, as guarded_update() does; returns their number. */
uint64
lockfence_guarded_set(Relation rel, const Fence *fence, GivenColumn *keys, int nkeys,
					  GivenColumn *change, FenceToken token)
{
	GuardedCall call = {
		.rel = rel,.fence = fence,.token = token,.nkeys = nkeys,.keys = keys,
		.mode = ACL_UPDATE,.nchanges = 1,.changes = change
	};

	return guarded_write(&call);
}

/*
 * Require some privilege to read or write the table before it is locked.  If there
 * is no such table, the caller reports that.
 */
void
lockfence_require_any_privilege(Oid relid, AclMode mode)
{
	char	   *name = get_rel_name(relid);

	if (name != NULL && pg_class_aclcheck(relid, GetUserId(), mode) != ACLCHECK_OK &&
		(mode == ACL_DELETE ||
		 pg_attribute_aclcheck_all(relid, GetUserId(), mode, ACLMASK_ANY) != ACLCHECK_OK))
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(relid)),
					   lockfence_visible(name));
}

/* Open the target, which must be fenced. */
static void
open_target(GuardedCall *call, FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("target must not be null")));
	lockfence_require_any_privilege(PG_GETARG_OID(0), call->mode);
	call->rel = lockfence_open_table(PG_GETARG_OID(0), RowExclusiveLock);
	call->fence = lockfence_written_fence(call->rel);
	if (call->fence == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not fenced",
						lockfence_visible(RelationGetRelationName(call->rel))),
				 errhint("Fence it by lockfence.attach(), or see lockfence.verify() if it was fenced before."),
				 errtable(call->rel)));
}

/* Begin with what the functions have in common: the target first, and the token last. */
static void
begin_call(GuardedCall *call, FunctionCallInfo fcinfo)
{
	int			last = PG_NARGS() - 1;

	open_target(call, fcinfo);
	lockfence_require_token(fcinfo, last);
	call->token = PG_GETARG_INT64(last);
}

/* The columns of an argument. */
static GivenColumn *
take_columns(const GuardedCall *call, FunctionCallInfo fcinfo, int argno, const char *name, int *ncolumns)
{
	return lockfence_given_columns(call->rel, lockfence_require_jsonb(fcinfo, argno, name), name, ncolumns);
}

/* Write; returns the number of rows. */
static Datum
end_call(GuardedCall *call)
{
	uint64		rows = guarded_write(call);

	table_close(call->rel, NoLock);
	return Int64GetDatum((int64) rows);
}

/* guarded_update(target regclass, key jsonb, changes jsonb, token) -> rows */
Datum
lockfence_guarded_update(PG_FUNCTION_ARGS)
{
	GuardedCall call = {.mode = ACL_UPDATE};

	begin_call(&call, fcinfo);
	call.keys = take_columns(&call, fcinfo, 1, "key", &call.nkeys);
	call.changes = take_columns(&call, fcinfo, 2, "changes", &call.nchanges);
	return end_call(&call);
}

/* guarded_delete(target regclass, key jsonb, token) -> rows */
Datum
lockfence_guarded_delete(PG_FUNCTION_ARGS)
{
	GuardedCall call = {.mode = ACL_DELETE};

	begin_call(&call, fcinfo);
	call.keys = take_columns(&call, fcinfo, 1, "key", &call.nkeys);
	return end_call(&call);
}

/* guarded_insert(target regclass, row_values jsonb, token) -> rows */
Datum
lockfence_guarded_insert(PG_FUNCTION_ARGS)
{
	GuardedCall call = {.mode = ACL_INSERT};

	begin_call(&call, fcinfo);
	call.changes = lockfence_given_columns(call.rel, lockfence_require_jsonb(fcinfo, 1, "row"), "row_values",
										   &call.nchanges);
	return end_call(&call);
}

/* Called once per backend. */
void
lockfence_guarded_init(void)
{
	HASHCTL		ctl = {.keysize = MAX_PLAN_KEY,.entrysize = sizeof(KeptPlan)};

	plans = hash_create("lockfence plans", 32, &ctl, HASH_ELEM | HASH_STRINGS);
}
