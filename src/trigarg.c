/*
 * trigarg.c
 *		A fence as its trigger's arguments declare it, parsed and cached.
 *
 * The arguments, each `setting=value`, are the only place where a fence's
 * settings live, so that they survive pg_dump and cannot disagree with a
 * second copy.  Columns are named, and resolved per relation, since partitions
 * number theirs differently.  What cannot be resolved is an error: a fence that
 * does not know its resource lets no write pass.
 *
 * Parsed fences are cached a backend, by trigger.  An invalidation only sets
 * a flag; a stale fence is parsed again at its next use.  The old one is
 * handed to the transaction's memory, as a guard further up may still use it.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "funcapi.h"
#include "lockfence.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

typedef struct CachedFence
{
	Oid			trigger;		/* hash key */
	Oid			relid;
	bool		stale;
	MemoryContext context;		/* holds the fence */
	Fence	   *fence;
} CachedFence;

/* What a trigger's FmgrInfo remembers of its last call. */
typedef struct CallCache
{
	uint64		generation;
	const Fence *fence;
} CallCache;

PG_FUNCTION_INFO_V1(lockfence_fence_settings);
PG_FUNCTION_INFO_V1(lockfence_template_columns);
PG_FUNCTION_INFO_V1(lockfence_resource_of);

static HTAB *fences = NULL;
static uint64 generation = 1;	/* changes when any cached fence turns stale */

/* A relcache entry has changed: flag the fences of that relation. */
static void
flag_stale(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	CachedFence *cached;

	if (fences == NULL)
		return;
	hash_seq_init(&status, fences);
	while ((cached = hash_seq_search(&status)) != NULL)
	{
		if (relid == cached->relid || !OidIsValid(relid))
		{
			cached->stale = true;
			generation++;
		}
	}
}

/* Called once a backend. */
void
lockfence_trigarg_init(void)
{
	CacheRegisterRelcacheCallback(flag_stale, (Datum) 0);
}

/* The error for an argument that says nothing valid. */
static void
refuse_argument(const char *argument, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid fence setting \"%s\"", argument),
			 errdetail("%s", detail),
			 errhint("Declare the fence again by lockfence.detach() and lockfence.attach().")));
}

/* Which of two words is it?  True for the second. */
static bool
second_word(const char *argument, const char *value,
			const char *first, const char *second)
{
	if (strcmp(value, first) != 0 && strcmp(value, second) != 0)
		refuse_argument(argument, psprintf("It must be \"%s\" or \"%s\".",
										   first, second));
	return strcmp(value, second) == 0;
}

/* Take in one argument, `setting=value`. */
static void
parse_argument(Fence *fence, const char *argument)
{
	const char *equals = strchr(argument, '=');
	const char *value = equals ? equals + 1 : "";
	char	   *setting = equals ? pnstrdup(argument, equals - argument) : "";

	if (strcmp(setting, "resource") == 0)
		fence->resource = pstrdup(value);
	else if (strcmp(setting, "token_column") == 0)
		fence->token_column = pstrdup(value);
	else if (strcmp(setting, "accept") == 0)
		fence->presented_only = second_word(argument, value, "any", "presented");
	else if (strcmp(setting, "enforcement") == 0)
		fence->advisory = second_word(argument, value, "fenced", "advisory");
	else if (strcmp(setting, "advisory_since") == 0)
		fence->advisory_since = DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in,
																		CStringGetDatum(value),
																		ObjectIdGetDatum(InvalidOid),
																		Int32GetDatum(-1)));
	else if (strcmp(setting, "missing") == 0)
		fence->missing_allowed = second_word(argument, value, "reject", "allow");
	else if (strcmp(setting, "repeat") == 0)
		fence->single_use = second_word(argument, value, "accept", "reject");
	else if (strcmp(setting, "validator") == 0)
		fence->validator = DatumGetObjectId(DirectFunctionCall1(regprocedurein,
																CStringGetDatum(value)));
	else
		refuse_argument(argument, "There is no such setting.");
}

/* Add a part to the template: text as it stands, or the name of a column. */
static TemplatePart *
add_part(Fence *fence, char *text)
{
	TemplatePart *part;

	if (fence->parts == NULL)
		fence->parts = palloc0(sizeof(TemplatePart));
	else
		fence->parts = repalloc(fence->parts,
								(fence->nparts + 1) * sizeof(TemplatePart));
	part = &fence->parts[fence->nparts++];
	memset(part, 0, sizeof(*part));
	part->literal = text;
	return part;
}

/* The end of the placeholder that begins here. */
static const char *
placeholder_end(const char *template, const char *start)
{
	const char *end = strpbrk(start, "{}");

	if (end == NULL || *end == '{' || end == start)
		refuse_argument(psprintf("resource=%s", template),
						"A placeholder is the name of a column in braces; a brace of the name itself is written twice.");
	return end;
}

/*
 * Split a template into text and column names.  A part for a column keeps
 * the name in `literal` until resolve_parts() replaces it, with attno -1.
 */
static void
split_template(Fence *fence, const char *template)
{
	StringInfoData text;
	const char *p;

	fence->constant = true;
	initStringInfo(&text);
	for (p = template; *p; p++)
	{
		if ((*p == '{' || *p == '}') && p[1] == *p)
			appendStringInfoChar(&text, *p++);
		else if (*p == '{')
		{
			const char *end = placeholder_end(template, p + 1);

			add_part(fence, text.data);
			add_part(fence, pnstrdup(p + 1, end - p - 1))->attno = -1;
			fence->constant = false;
			initStringInfo(&text);
			p = end;
		}
		else if (*p == '}')
			placeholder_end(template, p);
		else
			appendStringInfoChar(&text, *p);
	}
	add_part(fence, text.data);
}

/* The number of a column that the fence needs. */
static AttrNumber
resolve_column(Relation rel, const char *column)
{
	AttrNumber	attno = get_attnum(RelationGetRelid(rel), column);

	if (attno <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" that the fence of table \"%s\" needs does not exist",
						column, RelationGetRelationName(rel)),
				 errdetail("It was renamed or dropped after the fence was attached. The fence lets no write pass."),
				 errhint("Declare the fence again by lockfence.detach() and lockfence.attach()."),
				 errtable(rel)));
	if (TupleDescAttr(RelationGetDescr(rel), attno - 1)->attgenerated)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a fence cannot use generated column \"%s\"", column),
				 errdetail("Its value is not yet computed when the fence decides."),
				 errtablecol(rel, attno)));
	return attno;
}

/* Does the text form of a type depend on no setting of the session? */
static bool
output_is_fixed(Oid type)
{
	switch (getBaseType(type))
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case NUMERICOID:
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
		case CHAROID:
		case UUIDOID:
			return true;
		default:
			return get_typtype(getBaseType(type)) == TYPTYPE_ENUM;
	}
}

/* Find the columns of the template, and how their values are printed. */
static void
resolve_parts(Fence *fence, Relation rel)
{
	for (int i = 0; i < fence->nparts; i++)
	{
		TemplatePart *part = &fence->parts[i];
		Oid			type;
		Oid			output;
		bool		is_varlena;

		if (part->attno == 0)
			continue;
		part->attno = resolve_column(rel, part->literal);
		part->literal = NULL;
		type = TupleDescAttr(RelationGetDescr(rel), part->attno - 1)->atttypid;
		getTypeOutputInfo(type, &output, &is_varlena);
		fmgr_info_cxt(output, &part->output, CurrentMemoryContext);
		if (!output_is_fixed(type))
			fence->pin_settings = true;
	}
}

/* The validator has to be the table owner's to call. */
static void
check_validator(const Fence *fence, Relation rel)
{
	if (OidIsValid(fence->validator) &&
		!DatumGetBool(DirectFunctionCall3(has_function_privilege_id_id,
										  ObjectIdGetDatum(rel->rd_rel->relowner),
										  ObjectIdGetDatum(fence->validator),
										  CStringGetTextDatum("EXECUTE"))))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s",
						get_func_name(fence->validator)),
				 errdetail("The owner of table \"%s\" may not execute its fence's validator.",
						   RelationGetRelationName(rel))));
}

/*
 * Take in a trigger's arguments as the table's owner, whose validator may be
 * in a schema that is closed to whoever writes.
 */
static void
parse_arguments(Fence *fence, Relation rel, const Trigger *trigger)
{
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(rel->rd_rel->relowner, context | SECURITY_LOCAL_USERID_CHANGE);
	for (int i = 0; i < trigger->tgnargs; i++)
		parse_argument(fence, trigger->tgargs[i]);
	SetUserIdAndSecContext(user, context);
}

/* Parse a trigger's arguments and resolve them against its table. */
static Fence *
parse_fence(Relation rel, const Trigger *trigger)
{
	Fence	   *fence = palloc0(sizeof(Fence));

	parse_arguments(fence, rel, trigger);
	if (fence->resource)
	{
		split_template(fence, fence->resource);
		resolve_parts(fence, rel);
	}
	else if (fence->token_column == NULL)
		refuse_argument("resource", "A fence needs a resource or a token column.");
	if (fence->token_column)
	{
		fence->token_attno = resolve_column(rel, fence->token_column);
		if (getBaseType(TupleDescAttr(RelationGetDescr(rel),
									  fence->token_attno - 1)->atttypid) != INT8OID)
			refuse_argument(psprintf("token_column=%s", fence->token_column),
							"The column must be of type lockfence.fence_token or bigint.");
	}
	check_validator(fence, rel);
	return fence;
}

/* Make or renew the cache entry of a trigger. */
static void
load_fence(CachedFence *cached, Relation rel, const Trigger *trigger)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "lockfence fence",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Fence	   *fence = parse_fence(rel, trigger);

	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, CacheMemoryContext);
	if (cached->context != NULL)
		MemoryContextSetParent(cached->context, TopTransactionContext);
	cached->context = context;
	cached->fence = fence;
	cached->relid = RelationGetRelid(rel);
}

/* The fence that a trigger of the relation declares. */
static const Fence *
cached_fence(Relation rel, const Trigger *trigger)
{
	CachedFence *cached;
	bool		found;

	if (fences == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(CachedFence)};

		fences = hash_create("lockfence fences", 64, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	cached = hash_search(fences, &trigger->tgoid, HASH_ENTER, &found);
	if (!found)
	{
		cached->relid = RelationGetRelid(rel);
		cached->stale = true;
		cached->context = NULL;
		cached->fence = NULL;
	}
	while (cached->stale)
	{
		/* cleared first: a message that comes during the load sets it again */
		cached->stale = false;
		PG_TRY();
		{
			load_fence(cached, rel, trigger);
		}
		PG_CATCH();
		{
			cached->stale = true;
			PG_RE_THROW();
		}
		PG_END_TRY();
	}
	return cached->fence;
}

/* The fence of the trigger that is being called. */
const Fence *
lockfence_trigger_fence(FunctionCallInfo fcinfo)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	CallCache  *cache = (CallCache *) fcinfo->flinfo->fn_extra;

	if (cache == NULL)
		fcinfo->flinfo->fn_extra = cache =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(CallCache));
	if (cache->generation != generation)
	{
		cache->fence = cached_fence(trigger->tg_relation, trigger->tg_trigger);
		cache->generation = generation;
	}
	return cache->fence;
}

/*
 * The fence of a relation, or NULL where no guard is sure to fire; guards
 * have fixed names.
 */
const Fence *
lockfence_relation_fence(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (trigger->tgenabled == TRIGGER_FIRES_ALWAYS &&
			(strcmp(trigger->tgname, LOCKFENCE_ROW_GUARD) == 0 ||
			 strcmp(trigger->tgname, LOCKFENCE_STATEMENT_GUARD) == 0))
			return cached_fence(rel, trigger);
	}
	return NULL;
}

/* Fix every setting that the text form of a value may depend on. */
static int
pin_settings(void)
{
	static const char *const settings[][2] = {
		{"DateStyle", "ISO, YMD"}, {"IntervalStyle", "postgres"},
		{"TimeZone", "UTC"}, {"extra_float_digits", "1"},
		{"bytea_output", "hex"}, {"lc_monetary", "C"},
		{"quote_all_identifiers", "off"}, {"search_path", "pg_catalog"}
	};
	int			level = NewGUCNestLevel();

	for (int i = 0; i < lengthof(settings); i++)
		(void) set_config_option(settings[i][0], settings[i][1], PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

/* The error for a column that leaves the resource without a name. */
static void
refuse_null_placeholder(Relation rel, AttrNumber attno)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("null value in column \"%s\" names no resource",
					NameStr(TupleDescAttr(RelationGetDescr(rel), attno - 1)->attname)),
			 errdetail("The fence of table \"%s\" names its resource by this column.",
					   RelationGetRelationName(rel)),
			 errhint("Set the column, and declare it NOT NULL."),
			 errtablecol(rel, attno)));
}

/* Fill in the template.  A value stands at its part's place. */
static char *
format_resource(const Fence *fence, const Datum *values)
{
	StringInfoData name;
	int			level = fence->pin_settings ? pin_settings() : 0;

	initStringInfo(&name);
	for (int i = 0; i < fence->nparts; i++)
	{
		const TemplatePart *part = &fence->parts[i];

		appendStringInfoString(&name, part->literal ? part->literal :
							   OutputFunctionCall((FmgrInfo *) &part->output, values[i]));
	}
	if (fence->pin_settings)
		AtEOXact_GUC(true, level);

	if (name.len == 0 || name.len > LOCKFENCE_MAX_RESOURCE_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("resource name must be 1 to %d bytes long",
						LOCKFENCE_MAX_RESOURCE_LEN),
				 errdetail("The row's values make the template \"%s\" a name of %d bytes.",
						   fence->resource, name.len)));
	return name.data;
}

/* The resource that a row belongs to. */
char *
lockfence_slot_resource(const Fence *fence, Relation rel, TupleTableSlot *slot)
{
	Datum	   *values = palloc(fence->nparts * sizeof(Datum));

	for (int i = 0; i < fence->nparts; i++)
	{
		AttrNumber	attno = fence->parts[i].attno;
		bool		isnull;

		if (attno == 0)
			continue;
		values[i] = slot_getattr(slot, attno, &isnull);
		if (isnull)
			refuse_null_placeholder(rel, attno);
	}
	return format_resource(fence, values);
}

/* Is every column set that names the row's resource? */
bool
lockfence_slot_has_resource(const Fence *fence, TupleTableSlot *slot)
{
	for (int i = 0; i < fence->nparts; i++)
	{
		if (fence->parts[i].attno != 0 && slot_attisnull(slot, fence->parts[i].attno))
			return false;
	}
	return true;
}

/*
 * The resource that column values, by attribute number - 1, name; NULL where
 * one of its columns is among the missing.
 */
char *
lockfence_values_resource(const Fence *fence, const Datum *values, const bool *missing)
{
	Datum	   *part_values = palloc(fence->nparts * sizeof(Datum));

	for (int i = 0; i < fence->nparts; i++)
	{
		AttrNumber	attno = fence->parts[i].attno;

		if (attno == 0)
			continue;
		if (missing[attno - 1])
			return NULL;
		part_values[i] = values[attno - 1];
	}
	return format_resource(fence, part_values);
}

/* The resource of a fence whose template has no placeholder. */
char *
lockfence_constant_resource(const Fence *fence)
{
	Assert(fence->constant);
	return format_resource(fence, NULL);
}

/* Do both rows, to the byte, name the same resource? */
bool
lockfence_same_resource(const Fence *fence, Relation rel,
						TupleTableSlot *a, TupleTableSlot *b)
{
	for (int i = 0; i < fence->nparts; i++)
	{
		AttrNumber	attno = fence->parts[i].attno;
		Form_pg_attribute attribute;
		bool		a_null;
		bool		b_null;
		Datum		a_value;
		Datum		b_value;

		if (attno == 0)
			continue;
		attribute = TupleDescAttr(RelationGetDescr(rel), attno - 1);
		a_value = slot_getattr(a, attno, &a_null);
		b_value = slot_getattr(b, attno, &b_null);
		if (a_null || b_null ||
			!datum_image_eq(a_value, b_value, attribute->attbyval, attribute->attlen))
			return false;
	}
	return true;
}

/* resource_of(target regclass, row record): the resource of a row, or null */
Datum
lockfence_resource_of(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	const Fence *fence = lockfence_relation_fence(rel);
	HeapTupleHeader row = PG_GETARG_HEAPTUPLEHEADER(1);
	char	   *resource = NULL;

	if (HeapTupleHeaderGetTypeId(row) != rel->rd_rel->reltype)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the row is not of table \"%s\"", RelationGetRelationName(rel))));
	if (fence != NULL && fence->resource != NULL)
	{
		TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(rel),
														&TTSOpsHeapTuple);
		HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(row),.t_data = row};

		ExecStoreHeapTuple(&tuple, slot, false);
		resource = lockfence_slot_resource(fence, rel, slot);
		ExecDropSingleTupleTableSlot(slot);
	}
	table_close(rel, AccessShareLock);
	if (resource == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(resource));
}

/* template_columns(template text): the columns that a template names */
Datum
lockfence_template_columns(PG_FUNCTION_ARGS)
{
	Fence		fence = {0};
	ArrayBuildState *columns = initArrayResult(TEXTOID, CurrentMemoryContext, false);

	split_template(&fence, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	for (int i = 0; i < fence.nparts; i++)
	{
		if (fence.parts[i].attno != 0)
			columns = accumArrayResult(columns, CStringGetTextDatum(fence.parts[i].literal),
									   false, TEXTOID, CurrentMemoryContext);
	}
	PG_RETURN_DATUM(makeArrayResult(columns, CurrentMemoryContext));
}

/* A setting as a nullable text datum. */
static Datum
text_or_null(const char *value, bool *isnull)
{
	*isnull = value == NULL;
	return value ? CStringGetTextDatum(value) : (Datum) 0;
}

/*
 * fence_settings(arguments bytea): pg_trigger.tgargs, parsed.  The arguments
 * stand there one after the other, each ended by a zero byte; the caller's
 * need not be so well-formed.
 */
Datum
lockfence_fence_settings(PG_FUNCTION_ARGS)
{
	bytea	   *arguments = PG_GETARG_BYTEA_PP(0);
	int			length = VARSIZE_ANY_EXHDR(arguments);
	char	   *p = palloc0(length + 1);
	const char *end = p + length;
	Fence		fence = {0};
	TupleDesc	tupdesc;
	Datum		values[8];
	bool		isnull[8] = {false};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	memcpy(p, VARDATA_ANY(arguments), length);
	for (; p < end; p += strlen(p) + 1)
		parse_argument(&fence, p);

	values[0] = text_or_null(fence.resource, &isnull[0]);
	values[1] = text_or_null(fence.token_column, &isnull[1]);
	values[2] = CStringGetTextDatum(fence.presented_only ? "presented" : "any");
	values[3] = CStringGetTextDatum(fence.advisory ? "advisory" : "fenced");
	values[4] = CStringGetTextDatum(fence.missing_allowed ? "allow" : "reject");
	values[5] = CStringGetTextDatum(fence.single_use ? "reject" : "accept");
	values[6] = ObjectIdGetDatum(fence.validator);
	isnull[6] = !OidIsValid(fence.validator);
	values[7] = TimestampTzGetDatum(fence.advisory_since);
	isnull[7] = fence.advisory_since == 0;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, isnull)));
}
