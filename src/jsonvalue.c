/*
 * jsonvalue.c
 *		JSON from a caller: an object as columns and their values, each value as
 *		the text that the column's input function reads.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "args.h"
#include "jsonvalue.h"
#include "rows.h"
#include "visible.h"

PG_FUNCTION_INFO_V1(lockfence_given_texts);

static void append_array_element(StringInfo text, JsonbValue *value, bool documents);

/*
 * Append a JSON array as the text form of an SQL array: as JSON documents, or as
 * values of another type.
 */
static void
append_array(StringInfo text, JsonbContainer *array, bool documents)
{
	JsonbIterator *iterator = JsonbIteratorInit(array);
	JsonbIteratorToken token;
	JsonbValue	value;
	bool		first = true;

	check_stack_depth();
	appendStringInfoChar(text, '{');
	(void) JsonbIteratorNext(&iterator, &value, true);
	while ((token = JsonbIteratorNext(&iterator, &value, true)) == WJB_ELEM)
	{
		CHECK_FOR_INTERRUPTS();
		if (!first)
			appendStringInfoChar(text, ',');
		append_array_element(text, &value, documents);
		first = false;
	}
	appendStringInfoChar(text, '}');
}

/* The text of a scalar; for a JSON type, the document. */
static char *
json_text(const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvString:
			return pnstrdup(value->val.string.val, value->val.string.len);
		case jbvNumeric:
			return DatumGetCString(DirectFunctionCall1(numeric_out,
													   NumericGetDatum(value->val.numeric)));
		case jbvBool:
			return value->val.boolean ? "true" : "false";
		case jbvBinary:
			return JsonbToCString(NULL, value->val.binary.data, value->val.binary.len);
		default:
			elog(ERROR, "unexpected jsonb value type %d", (int) value->type);
			return NULL;		/* keep compiler quiet */
	}
}

/* A value as a JSON document: a string with its quotes. */
static char *
json_document(JsonbValue *value)
{
	Jsonb	   *document;

	if (value->type == jbvBinary)
		return json_text(value);
	document = JsonbValueToJsonb(value);
	return JsonbToCString(NULL, &document->root, VARSIZE(document));
}

/* Append one element: NULL, a nested array, or a quoted value. */
static void
append_array_element(StringInfo text, JsonbValue *value, bool documents)
{
	if (value->type == jbvNull)
		appendStringInfoString(text, "NULL");
	else if (value->type == jbvBinary && JsonContainerIsArray(value->val.binary.data))
		append_array(text, value->val.binary.data, documents);
	else
	{
		appendStringInfoChar(text, '"');
		for (const char *p = documents ? json_document(value) : json_text(value); *p; p++)
		{
			if (*p == '"' || *p == '\\')
				appendStringInfoChar(text, '\\');
			appendStringInfoChar(text, *p);
		}
		appendStringInfoChar(text, '"');
	}
}

/* Is the type json or jsonb, which read a JSON document as it is? */
static bool
is_json_type(Oid type)
{
	type = getBaseType(type);
	return type == JSONOID || type == JSONBOID;
}

/* The text for the column's input function. */
static char *
json_input(Relation rel, const char *column, Oid type, JsonbValue *value)
{
	Oid			element = get_element_type(getBaseType(type));

	if (is_json_type(type))
		return json_document(value);
	if (value->type != jbvBinary)
		return json_text(value);
	if (JsonContainerIsArray(value->val.binary.data) && OidIsValid(element))
	{
		StringInfoData text;

		initStringInfo(&text);
		append_array(&text, value->val.binary.data, is_json_type(element));
		return text.data;
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("column \"%s\" of type %s cannot be set from a JSON %s",
					lockfence_visible(column), lockfence_visible(format_type_be(type)),
					JsonContainerIsArray(value->val.binary.data) ? "array" : "object"),
			 errhint("Give the value as a JSON string, in the text form of the type."),
			 errtable(rel)));
	return NULL;				/* keep compiler quiet */
}

/* The column of that name; an error if there is none that can be written. */
static Form_pg_attribute
find_column(Relation rel, const char *name)
{
	AttrNumber	attno = get_attnum(RelationGetRelid(rel), name);

	if (attno <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						lockfence_visible(name), lockfence_visible(RelationGetRelationName(rel))),
				 errtable(rel)));
	return TupleDescAttr(RelationGetDescr(rel), attno - 1);
}

/* Convert the values of the columns that an object names, by their input functions. */
void
lockfence_convert_columns(Relation rel, GivenColumn *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		GivenColumn *column = &columns[i];
		Oid			input;
		Oid			ioparam;

		getTypeInputInfo(column->type, &input, &ioparam);
		column->value = OidInputFunctionCall(input,
											 column->isnull ? NULL : json_input(rel, column->name, column->type, &column->given),
											 ioparam,
											 TupleDescAttr(RelationGetDescr(rel), column->attno - 1)->atttypmod);
	}
}

/* Raise an error unless the JSON is an object with at least one member. */
static void
require_object(Jsonb *object, const char *what)
{
	if (!JB_ROOT_IS_OBJECT(object))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be a JSON object of column names and values", what)));
	if (JB_ROOT_COUNT(object) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must name at least one column", what)));
}

/*
 * The columns that a JSON object names.  The caller converts their values once
 * privileges are checked, since an input function may run code of a type's owner.
 */
GivenColumn *
lockfence_given_columns(Relation rel, Jsonb *object, const char *what, int *ncolumns)
{
	JsonbIterator *iterator = JsonbIteratorInit(&object->root);
	JsonbValue	name;
	GivenColumn *columns;
	int			n = 0;

	require_object(object, what);
	columns = palloc0(JB_ROOT_COUNT(object) * sizeof(GivenColumn));
	(void) JsonbIteratorNext(&iterator, &name, true);
	while (JsonbIteratorNext(&iterator, &name, true) == WJB_KEY)
	{
		GivenColumn *column = &columns[n++];
		Form_pg_attribute attribute = find_column(rel, pnstrdup(name.val.string.val,
																name.val.string.len));

		(void) JsonbIteratorNext(&iterator, &column->given, true);
		column->attno = attribute->attnum;
		column->name = NameStr(attribute->attname);
		column->type = attribute->atttypid;
		column->isnull = column->given.type == jbvNull;
	}
	*ncolumns = n;
	return columns;
}

/*
 * The equality operator of the type's default operator class, qualified for SQL so
 * that the search path does not matter.  Only a superuser can change that class.
 */
static char *
equality_of(const char *column, Oid type)
{
	Oid			equality = lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr;
	HeapTuple	tuple;
	Form_pg_operator op;
	char	   *name;

	if (!OidIsValid(equality))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("column \"%s\" cannot be part of a key", lockfence_visible(column)),
				 errdetail("Type %s has no equality operator.",
						   lockfence_visible(format_type_be(type)))));
	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(equality));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", equality);
	op = (Form_pg_operator) GETSTRUCT(tuple);
	name = psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(op->oprnamespace)),
					NameStr(op->oprname));
	ReleaseSysCache(tuple);
	return name;
}

/* Append `column = $n`. */
void
lockfence_append_key(StringInfo statement, const GivenColumn *key, int param)
{
	if (key->isnull)
		appendStringInfo(statement, "%s IS NULL", quote_identifier(key->name));
	else
		appendStringInfo(statement, "%s %s $%d", quote_identifier(key->name),
						 equality_of(key->name, key->type), param);
}

/*
 * _given_texts(target regclass, columns jsonb, is_key boolean): the columns that an
 * object names, each with the text for its input function (null: a null), which is
 * not called, and for a key with the operator that compares.
 */
Datum
lockfence_given_texts(PG_FUNCTION_ARGS)
{
	Relation	rel = lockfence_open_table(PG_GETARG_OID(0), AccessShareLock);
	Jsonb	   *object = PG_GETARG_JSONB_P(1);
	ReturnSetInfo *rows = (ReturnSetInfo *) fcinfo->resultinfo;
	JsonbIterator *iterator = JsonbIteratorInit(&object->root);
	JsonbValue	name;
	JsonbValue	value;

	lockfence_begin_rows(fcinfo);
	(void) JsonbIteratorNext(&iterator, &name, true);
	while (JsonbIteratorNext(&iterator, &name, true) == WJB_KEY)
	{
		Form_pg_attribute column = find_column(rel, pnstrdup(name.val.string.val, name.val.string.len));
		Datum		values[3] = {NameGetDatum(&column->attname)};
		bool		nulls[3] = {false};

		(void) JsonbIteratorNext(&iterator, &value, true);
		nulls[1] = value.type == jbvNull;
		if (!nulls[1])
			values[1] = CStringGetTextDatum(json_input(rel, NameStr(column->attname),
													   column->atttypid, &value));
		nulls[2] = !PG_GETARG_BOOL(2);
		if (!nulls[2])
			values[2] = CStringGetTextDatum(equality_of(NameStr(column->attname), column->atttypid));
		tuplestore_putvalues(rows->setResult, rows->setDesc, values, nulls);
	}
	table_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* An argument as jsonb; an error if it is null. */
Jsonb *
lockfence_require_jsonb(FunctionCallInfo fcinfo, int argno, const char *what)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", what)));
	return PG_GETARG_JSONB_P(argno);
}
