/*
 * guarded.c
 *		guarded_update() and guarded_delete(): token and write in one call.
 *
 * Where the resource follows from the key, its mark is checked first, so that
 * a stale token is refused even when no row matches, and so that mark and row
 * are locked in the order that present() teaches.  The write itself is an
 * ordinary statement of the caller, with the caller's privileges and row
 * security; its guard finds the token as the ambient one of this call.
 *
 * Values go from jsonb through the column's own input function into
 * parameters.  Plans are kept a backend, by the statement's text, which names
 * everything in full, and the types of its parameters.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_operator.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "lockfence.h"

/* Plans beyond this number are made anew for every call. */
#define MAX_PLANS 256

/* Longest statement, with its types, whose plan is kept, in bytes. */
#define MAX_PLAN_KEY 1024

typedef struct KeptPlan
{
	char		key[MAX_PLAN_KEY];	/* hash key */
	SPIPlanPtr	plan;
} KeptPlan;

/* One column that the caller names. */
typedef struct GivenColumn
{
	AttrNumber	attno;
	const char *name;
	Oid			type;
	Datum		value;
	bool		isnull;
} GivenColumn;

/* One call. */
typedef struct GuardedCall
{
	Relation	rel;
	const Fence *fence;
	FenceToken	token;
	int			nkeys;
	GivenColumn *keys;
	int			nchanges;		/* 0: a DELETE */
	GivenColumn *changes;
} GuardedCall;

PG_FUNCTION_INFO_V1(lockfence_guarded_update);
PG_FUNCTION_INFO_V1(lockfence_guarded_delete);

static HTAB *plans = NULL;

/* The column of that name; an error if there is none to write. */
static Form_pg_attribute
find_column(Relation rel, const char *name)
{
	AttrNumber	attno = get_attnum(RelationGetRelid(rel), name);

	if (attno <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						name, RelationGetRelationName(rel)),
				 errtable(rel)));
	return TupleDescAttr(RelationGetDescr(rel), attno - 1);
}

/* One member of the caller's object, converted for its column. */
static void
convert_column(Relation rel, GivenColumn *column, JsonbValue *name, JsonbValue *value)
{
	Form_pg_attribute attribute;
	Oid			input;
	Oid			ioparam;

	attribute = find_column(rel, pnstrdup(name->val.string.val, name->val.string.len));
	column->attno = attribute->attnum;
	column->name = NameStr(attribute->attname);
	column->type = attribute->atttypid;
	column->isnull = value->type == jbvNull;
	getTypeInputInfo(column->type, &input, &ioparam);
	column->value = OidInputFunctionCall(input,
										 column->isnull ? NULL : lockfence_json_input(rel, column->name, column->type, value),
										 ioparam, attribute->atttypmod);
}

/* The columns that a JSON object names. */
static GivenColumn *
convert_object(Relation rel, Jsonb *object, const char *what, int *ncolumns)
{
	JsonbIterator *iterator;
	JsonbValue	name;
	JsonbValue	value;
	GivenColumn *columns;
	int			n = 0;

	if (!JB_ROOT_IS_OBJECT(object))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be a JSON object of column names and values", what)));
	if (JB_ROOT_COUNT(object) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must name at least one column", what)));

	columns = palloc0(JB_ROOT_COUNT(object) * sizeof(GivenColumn));
	iterator = JsonbIteratorInit(&object->root);
	(void) JsonbIteratorNext(&iterator, &name, true);
	while (JsonbIteratorNext(&iterator, &name, true) == WJB_KEY)
	{
		(void) JsonbIteratorNext(&iterator, &value, true);
		convert_column(rel, &columns[n++], &name, &value);
	}
	*ncolumns = n;
	return columns;
}

/* Append `column = $n`, by the equality that the type's indexes use. */
static void
append_key(StringInfo statement, const GivenColumn *key, int param)
{
	TypeCacheEntry *type = lookup_type_cache(key->type, TYPECACHE_EQ_OPR);
	HeapTuple	tuple;
	Form_pg_operator op;

	if (key->isnull)
	{
		appendStringInfo(statement, "%s IS NULL", quote_identifier(key->name));
		return;
	}
	if (!OidIsValid(type->eq_opr))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("column \"%s\" cannot be part of a key", key->name),
				 errdetail("Type %s has no equality operator.",
						   format_type_be(key->type))));
	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(type->eq_opr));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", type->eq_opr);
	op = (Form_pg_operator) GETSTRUCT(tuple);
	appendStringInfo(statement, "%s OPERATOR(%s.%s) $%d", quote_identifier(key->name),
					 quote_identifier(get_namespace_name(op->oprnamespace)),
					 NameStr(op->oprname), param);
	ReleaseSysCache(tuple);
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
	appendStringInfo(&statement, call->nchanges > 0 ? "UPDATE %s SET " : "DELETE FROM %s",
					 table);
	for (int i = 0; i < call->nchanges; i++)
	{
		const GivenColumn *change = &call->changes[i];

		types[n] = change->type;
		values[n] = change->value;
		nulls[n++] = change->isnull ? 'n' : ' ';
		appendStringInfo(&statement, "%s%s = $%d", i > 0 ? ", " : "",
						 quote_identifier(change->name), n);
	}
	for (int i = 0; i < call->nkeys; i++)
	{
		appendStringInfoString(&statement, i > 0 ? " AND " : " WHERE ");
		append_key(&statement, &call->keys[i], n + 1);
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
 * What a plan is kept by.  The same text may need another plan once a column has
 * changed its type; the first one stays, since it may be what is being run.
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

/* Run the statement; returns the number of rows. */
static uint64
run_statement(const GuardedCall *call)
{
	int			most = call->nchanges + call->nkeys;
	Oid		   *types = palloc(most * sizeof(Oid));
	Datum	   *values = palloc(most * sizeof(Datum));
	char	   *nulls = palloc(most);
	int			nparams;
	char	   *statement = build_statement(call, &nparams, types, values, nulls);
	uint64		rows;
	int			result;

	SPI_connect();
	result = SPI_execute_plan(plan_statement(statement, nparams, types),
							  values, nulls, false, 0);
	if (result != SPI_OK_UPDATE && result != SPI_OK_DELETE)
		elog(ERROR, "\"%s\" failed: %s", statement, SPI_result_code_string(result));
	rows = SPI_processed;
	SPI_finish();
	return rows;
}

/* The resource, if the key names it whole; NULL if only the row can tell. */
static char *
key_resource(const GuardedCall *call)
{
	int			natts = RelationGetNumberOfAttributes(call->rel);
	Datum	   *values = palloc0(natts * sizeof(Datum));
	bool	   *missing = palloc(natts * sizeof(bool));

	if (call->fence->resource == NULL)
		return NULL;
	memset(missing, true, natts * sizeof(bool));
	for (int i = 0; i < call->nkeys; i++)
	{
		const GivenColumn *key = &call->keys[i];

		values[key->attno - 1] = key->value;
		missing[key->attno - 1] = key->isnull;
	}
	return lockfence_values_resource(call->fence, values, missing);
}

/* Check the token before the row is looked for. */
static void
check_key_resource(const GuardedCall *call)
{
	FenceToken	previous;
	FenceCheck	check = lockfence_fence_check(call->fence, call->rel, key_resource(call));

	check.token = call->token;
	if (check.write.resource != NULL)
		(void) lockfence_check_and_advance(&check, &previous);
}

/* The call's token becomes the ambient one; two that differ are refused. */
static FenceToken
begin_call(const GuardedCall *call)
{
	FenceToken	before = lockfence_ambient_token();
	FencedWrite write = {.rel = call->rel,.advisory = call->fence->advisory};

	(void) lockfence_pass_gate(&write);
	if (before != 0 && before != call->token)
	{
		write.resource = key_resource(call);
		if (write.resource == NULL)
			write.resource = call->fence->resource;
		lockfence_refuse_conflicting(&write, call->token, "The token given",
									 before, "the transaction's ambient token");
	}
	lockfence_set_ambient_token(call->token);
	return before;
}

/* Check, write, and put the ambient token back. */
static uint64
guarded_write(const GuardedCall *call)
{
	FenceToken	before;
	uint64		rows;

	before = begin_call(call);
	check_key_resource(call);
	rows = run_statement(call);
	lockfence_set_ambient_token(before);
	return rows;
}

/* Open the target, which must be fenced. */
static void
open_target(GuardedCall *call, FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("target must not be null")));
	call->rel = lockfence_open_table(PG_GETARG_OID(0), RowExclusiveLock);
	call->fence = lockfence_relation_fence(call->rel);
	if (call->fence == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not fenced",
						RelationGetRelationName(call->rel)),
				 errhint("Fence it by lockfence.attach(), or look at lockfence.verify() if it was."),
				 errtable(call->rel)));
}

/* An argument as jsonb, not null. */
static Jsonb *
require_jsonb(FunctionCallInfo fcinfo, int argno, const char *what)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", what)));
	return PG_GETARG_JSONB_P(argno);
}

/* guarded_update(target regclass, key jsonb, changes jsonb, token) -> rows */
Datum
lockfence_guarded_update(PG_FUNCTION_ARGS)
{
	GuardedCall call = {0};
	uint64		rows;

	open_target(&call, fcinfo);
	lockfence_require_token(fcinfo, 3);
	call.token = PG_GETARG_INT64(3);
	call.keys = convert_object(call.rel, require_jsonb(fcinfo, 1, "key"), "key",
							   &call.nkeys);
	call.changes = convert_object(call.rel, require_jsonb(fcinfo, 2, "changes"),
								  "changes", &call.nchanges);
	rows = guarded_write(&call);
	table_close(call.rel, NoLock);
	PG_RETURN_INT64((int64) rows);
}

/* guarded_delete(target regclass, key jsonb, token) -> rows */
Datum
lockfence_guarded_delete(PG_FUNCTION_ARGS)
{
	GuardedCall call = {0};
	uint64		rows;

	open_target(&call, fcinfo);
	lockfence_require_token(fcinfo, 2);
	call.token = PG_GETARG_INT64(2);
	call.keys = convert_object(call.rel, require_jsonb(fcinfo, 1, "key"), "key",
							   &call.nkeys);
	rows = guarded_write(&call);
	table_close(call.rel, NoLock);
	PG_RETURN_INT64((int64) rows);
}

/* Called once a backend. */
void
lockfence_guarded_init(void)
{
	HASHCTL		ctl = {.keysize = MAX_PLAN_KEY,.entrysize = sizeof(KeptPlan)};

	plans = hash_create("lockfence plans", 32, &ctl, HASH_ELEM | HASH_STRINGS);
}
