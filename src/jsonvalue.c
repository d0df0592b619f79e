/*
 * jsonvalue.c
 *		A JSON value as the text that a column's input function reads.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "lockfence.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

static void append_array_element(StringInfo text, JsonbValue *value, bool documents);

/*
 * Append a JSON array as the text form of an SQL array: of JSON documents, or
 * of values of another type.
 */
static void
append_array(StringInfo text, JsonbContainer *array, bool documents)
{
	JsonbIterator *iterator = JsonbIteratorInit(array);
	JsonbIteratorToken token;
	JsonbValue	value;
	bool		first = true;

	appendStringInfoChar(text, '{');
	(void) JsonbIteratorNext(&iterator, &value, true);
	while ((token = JsonbIteratorNext(&iterator, &value, true)) == WJB_ELEM)
	{
		if (!first)
			appendStringInfoChar(text, ',');
		append_array_element(text, &value, documents);
		first = false;
	}
	appendStringInfoChar(text, '}');
}

/* The text of a scalar or, where it is a document, its JSON. */
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

/* A value as a JSON document: a string with quotes and all. */
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

/* Does the type take a JSON document as it stands? */
static bool
is_json_type(Oid type)
{
	type = getBaseType(type);
	return type == JSONOID || type == JSONBOID;
}

/* The text that the column's input function is to read. */
char *
lockfence_json_input(Relation rel, const char *column, Oid type, JsonbValue *value)
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
					column, format_type_be(type),
					JsonContainerIsArray(value->val.binary.data) ? "array" : "object"),
			 errhint("Give the value as a JSON string, in the text form of the type."),
			 errtable(rel)));
	return NULL;				/* keep compiler quiet */
}
