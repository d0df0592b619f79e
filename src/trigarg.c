/*
 * trigarg.c
 *		A fence's settings as the arguments of its triggers: read here and written
 *		here, and nowhere else.
 *
 * An argument is SETTING=VALUE.  The last argument for a setting counts, and a setting
 * without one has its default.  The owner of a table can make the arguments any text, and
 * administrators call what reads them.  So they are read as text alone: this looks up no
 * name and raises no error.  It returns the settings that make sense, and what is wrong
 * with the first argument that does not.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "lockfence.h"
#include "missing.h"
#include "placeholder.h"
#include "rows.h"
#include "trigarg.h"
#include "visible.h"

#define MAX_WORDS 4

static const struct
{
	const char *name;
	const char *words[MAX_WORDS + 1];	/* the values allowed, the default
										 * first; none: any text */
	const char *(*canonical) (const char *value);	/* of more values than those */
}			known_settings[NSETTINGS] = {
	[SETTING_RESOURCE] = {"resource"},
	[SETTING_TOKEN_COLUMN] = {"token_column"},
	[SETTING_ACCEPT] = {"accept", {"any", ACCEPT_PRESENTED, ACCEPT_NAMED, ACCEPT_READ}},
	[SETTING_ENFORCEMENT] = {"enforcement", {"fenced", "advisory"}},
	[SETTING_MISSING] = {"missing", {MISSING_REJECT, MISSING_ALLOW, "allow COMMAND [, ...] (insert, update, delete, truncate)"}, lockfence_missing_text},
	[SETTING_REPEAT] = {"repeat", {"accept", "reject"}},
	[SETTING_VALIDATOR] = {"validator"},
	[SETTING_ADVISORY_SINCE] = {"advisory_since"}
};

PG_FUNCTION_INFO_V1(lockfence_fence_settings);
PG_FUNCTION_INFO_V1(lockfence_argument_list);
PG_FUNCTION_INFO_V1(lockfence_declared);
PG_FUNCTION_INFO_V1(lockfence_arguments);
PG_FUNCTION_INFO_V1(lockfence_template_columns);
PG_FUNCTION_INFO_V1(lockfence_placeholders);

/* ---- faults ------------------------------------------------------------------------------------ */

static SettingFault
setting_fault(const char *argument, const char *detail)
{
	return (SettingFault) {
		.message = psprintf("invalid fence setting \"%s\"", lockfence_visible(argument)),
		.detail = detail,
		.hint = "Declare the fence again by lockfence.detach() and lockfence.attach()."
	};
}

/* Raise the error, if there is a fault. */
void
lockfence_raise_fault(const SettingFault *fault)
{
	if (fault->message == NULL)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg_internal("%s", fault->message),
			 errdetail_internal("%s", fault->detail),
			 fault->hint ? errhint("%s", fault->hint) : 0));
}

/* Raise the error for an invalid argument. */
void
lockfence_refuse_setting(const char *argument, const char *detail)
{
	SettingFault fault = setting_fault(argument, detail);

	lockfence_raise_fault(&fault);
}

/* What is wrong with a template.  Its length comes first: the parts of a long one take far more memory. */
SettingFault
lockfence_template_fault(const char *template)
{
	const char *rest = template;
	TemplatePartKind kind;

	if (strlen(template) > LOCKFENCE_MAX_RESOURCE_LEN)
		return (SettingFault) {
			.message = psprintf("resource must be 1 to %d bytes long", LOCKFENCE_MAX_RESOURCE_LEN),
			.detail = psprintf("The template has %zu bytes.", strlen(template))
		};
	while ((kind = lockfence_next_part(&rest, NULL)) != TEMPLATE_END)
	{
		if (kind == TEMPLATE_FAULT)
			return setting_fault(psprintf("resource=%s", template),
								 "A placeholder is the name of a column in braces; a brace of the name itself is written twice.");
	}
	return (SettingFault) {0};
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* The setting of that name; -1: there is none. */
static int
find_setting(const char *name, size_t length)
{
	for (int i = 0; i < NSETTINGS; i++)
	{
		if (strlen(known_settings[i].name) == length &&
			strncmp(known_settings[i].name, name, length) == 0)
			return i;
	}
	return -1;
}

static bool
takes_words(int setting)
{
	return known_settings[setting].words[0] != NULL;
}

/* The value as it is stored, of a setting that takes words; NULL: it is none of them. */
static const char *
canonical_word(int setting, const char *value)
{
	if (value != NULL && known_settings[setting].canonical != NULL)
		return known_settings[setting].canonical(value);
	for (int i = 0; value != NULL && known_settings[setting].words[i] != NULL; i++)
	{
		if (strcmp(known_settings[setting].words[i], value) == 0)
			return value;
	}
	return NULL;
}

static bool
is_default(int setting, const char *value)
{
	return takes_words(setting) && strcmp(known_settings[setting].words[0], value) == 0;
}

/* "any, presented" */
static const char *
list_words(int setting)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; known_settings[setting].words[i] != NULL; i++)
		appendStringInfo(&list, "%s%s", i > 0 ? ", " : "", known_settings[setting].words[i]);
	return list.data;
}

/*
 * Read a timestamp; returns false if the text is not one.  This needs no
 * subtransaction: the input function takes nothing that an error would leave behind.
 */
static bool
read_timestamp(const char *text, TimestampTz *timestamp)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool valid = true;

	PG_TRY();
	{
		*timestamp = DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in,
															 CStringGetDatum(text),
															 ObjectIdGetDatum(InvalidOid),
															 Int32GetDatum(-1)));
	}
	PG_CATCH();
	{
		if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		valid = false;
	}
	PG_END_TRY();
	return valid;
}

/* What is wrong with an argument. */
static SettingFault
argument_fault(FenceSettings *settings, int setting, const char *argument, const char *value)
{
	if (setting < 0)
		return setting_fault(argument, "There is no such setting.");
	if (takes_words(setting) && canonical_word(setting, value) == NULL)
		return setting_fault(argument, psprintf("It must be one of: %s.", list_words(setting)));
	if (setting == SETTING_RESOURCE)
		return lockfence_template_fault(value);
	if (setting == SETTING_ADVISORY_SINCE && !read_timestamp(value, &settings->advisory_since))
		return setting_fault(argument, "It must be a timestamp.");
	return (SettingFault) {0};
}

/* Take in one argument.  The settings point into it, so it must stay allocated. */
void
lockfence_read_argument(FenceSettings *settings, const char *argument)
{
	const char *equals = strchr(argument, '=');
	const char *value = equals ? equals + 1 : NULL;
	int			setting = equals ? find_setting(argument, equals - argument) : -1;

	if (settings->fault.message == NULL)
		settings->fault = argument_fault(settings, setting, argument, value);
	if (setting >= 0 && takes_words(setting))
		value = canonical_word(setting, value);
	if (setting >= 0 && value != NULL)
		settings->values[setting] = is_default(setting, value) ? NULL : value;
}

/*
 * The bytes of pg_trigger.tgargs, followed by a zero byte; NULL if there are more than
 * lockfence reads.  They are the arguments one after the other, each ended by a zero byte.
 */
char *
lockfence_argument_bytes(Datum tgargs, int *length)
{
	bytea	   *bytes;
	char	   *copy;

	/* before it is decompressed: it can be of any length */
	if (toast_raw_datum_size(tgargs) - VARHDRSZ > LOCKFENCE_MAX_ARGUMENTS_LEN)
		return NULL;
	bytes = DatumGetByteaPP(tgargs);
	*length = VARSIZE_ANY_EXHDR(bytes);
	copy = palloc0(*length + 1);
	memcpy(copy, VARDATA_ANY(bytes), *length);
	return copy;
}

/* _argument_list(arguments bytea, number integer): see fence.sql */
Datum
lockfence_argument_list(PG_FUNCTION_ARGS)
{
	int			length;
	char	   *bytes = lockfence_argument_bytes(PG_GETARG_DATUM(0), &length);
	ArrayBuildState *list = initArrayResult(TEXTOID, CurrentMemoryContext, false);
	int			number = 0;

	if (bytes == NULL || (length > 0 && bytes[length - 1] != '\0'))
		PG_RETURN_NULL();
	for (char *p = bytes; p < bytes + length; p += strlen(p) + 1)
	{
		if (!pg_verifymbstr(p, strlen(p), true))
			PG_RETURN_NULL();
		list = accumArrayResult(list, CStringGetTextDatum(p), false, TEXTOID, CurrentMemoryContext);
		number++;
	}
	if (number != PG_GETARG_INT32(1))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(makeArrayResult(list, CurrentMemoryContext));
}

/* ---- settings as columns ----------------------------------------------------------------------- */

/* The settings with their defaults, all but a timestamp as text. */
static void
fill_columns(const FenceSettings *settings, Datum *values, bool *isnull)
{
	for (int i = 0; i < NSETTINGS; i++)
	{
		const char *value = settings->values[i] ? settings->values[i] : known_settings[i].words[0];

		isnull[i] = value == NULL;
		values[i] = value ? CStringGetTextDatum(value) : (Datum) 0;
	}
	values[SETTING_ADVISORY_SINCE] = TimestampTzGetDatum(settings->advisory_since);
	isnull[SETTING_ADVISORY_SINCE] |= settings->fault.message != NULL;
}

/* fence_settings(arguments bytea): the settings, or an error */
Datum
lockfence_fence_settings(PG_FUNCTION_ARGS)
{
	int			length;
	char	   *bytes = lockfence_argument_bytes(PG_GETARG_DATUM(0), &length);
	FenceSettings settings = {0};
	Datum		values[NSETTINGS];
	bool		isnull[NSETTINGS];

	if (bytes == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a fence's settings must be at most %d bytes long", LOCKFENCE_MAX_ARGUMENTS_LEN)));
	for (char *p = bytes; p < bytes + length; p += strlen(p) + 1)
	{
		(void) pg_verifymbstr(p, strlen(p), false);
		lockfence_read_argument(&settings, p);
	}
	lockfence_raise_fault(&settings.fault);
	fill_columns(&settings, values, isnull);
	if (!isnull[SETTING_VALIDATOR])
		values[SETTING_VALIDATOR] = DirectFunctionCall1(regprocedurein,
														CStringGetDatum(settings.values[SETTING_VALIDATOR]));
	PG_RETURN_DATUM(lockfence_return_row(fcinfo, values, isnull));
}

/* Settings that are valid one by one may still make no fence. */
static void
require_fence(FenceSettings *settings)
{
	if (settings->fault.message != NULL)
		return;
	if (settings->values[SETTING_RESOURCE] == NULL && settings->values[SETTING_TOKEN_COLUMN] == NULL)
		settings->fault.message = "they name neither a resource nor a token column";
	else if (settings->values[SETTING_ACCEPT] != NULL && strcmp(settings->values[SETTING_ACCEPT], ACCEPT_READ) == 0 &&
			 (settings->values[SETTING_RESOURCE] == NULL || settings->values[SETTING_TOKEN_COLUMN] == NULL))
		settings->fault.message = "a token column can be read only where a resource is named";
	else if (settings->values[SETTING_REPEAT] != NULL && settings->values[SETTING_MISSING] != NULL)
		settings->fault.message = "a single-use fence cannot let writes without a token pass";
}

/* The settings that are not at their defaults, by their names. */
static Datum
settings_as_jsonb(const FenceSettings *settings)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	for (int i = 0; i < NSETTINGS; i++)
	{
		if (settings->values[i] == NULL)
			continue;
		appendStringInfo(&json, "%s\"%s\":", json.len > 1 ? "," : "", known_settings[i].name);
		escape_json(&json, settings->values[i]);
	}
	appendStringInfoChar(&json, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

/* Read a list of arguments. */
static FenceSettings
read_list(ArrayType *list)
{
	FenceSettings settings = {0};
	Datum	   *arguments;
	bool	   *isnull;
	int			number;

	deconstruct_array(list, TEXTOID, -1, false, TYPALIGN_INT, &arguments, &isnull, &number);
	for (int i = 0; i < number; i++)
		lockfence_read_argument(&settings, isnull[i] ? "" : TextDatumGetCString(arguments[i]));
	require_fence(&settings);
	return settings;
}

/* _declared(arguments text[]): the settings, and what is wrong with them */
Datum
lockfence_declared(PG_FUNCTION_ARGS)
{
	FenceSettings settings = {.fault.message = "they cannot be read"};
	Datum		values[NSETTINGS + 2];
	bool		isnull[NSETTINGS + 2] = {false};

	if (!PG_ARGISNULL(0))
		settings = read_list(PG_GETARG_ARRAYTYPE_P(0));
	fill_columns(&settings, values, isnull);
	values[NSETTINGS] = settings_as_jsonb(&settings);
	isnull[NSETTINGS + 1] = settings.fault.message == NULL;
	if (settings.fault.message != NULL)
		values[NSETTINGS + 1] = CStringGetTextDatum(settings.fault.message);
	PG_RETURN_DATUM(lockfence_return_row(fcinfo, values, isnull));
}

/* _placeholders(template text): the columns that a template names; null: it is not valid */
Datum
lockfence_placeholders(PG_FUNCTION_ARGS)
{
	const char *template = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ArrayBuildState *columns = initArrayResult(TEXTOID, CurrentMemoryContext, false);
	TemplatePartKind kind;
	char	   *part;

	if (lockfence_template_fault(template).message != NULL)
		PG_RETURN_NULL();
	while ((kind = lockfence_next_part(&template, &part)) != TEMPLATE_END)
	{
		if (kind == TEMPLATE_COLUMN)
			columns = accumArrayResult(columns, CStringGetTextDatum(part), false, TEXTOID, CurrentMemoryContext);
	}
	PG_RETURN_DATUM(makeArrayResult(columns, CurrentMemoryContext));
}

/* template_columns(template text): the same, or an error */
Datum
lockfence_template_columns(PG_FUNCTION_ARGS)
{
	char	   *template = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SettingFault fault = lockfence_template_fault(template);

	/* the caller gives it, and no fence has it yet */
	if (fault.hint != NULL)
	{
		fault.message = psprintf("invalid resource \"%s\"", lockfence_visible(template));
		fault.hint = "Name a column as in 'settle:batch-{batch_id}'.";
	}
	lockfence_raise_fault(&fault);
	return lockfence_placeholders(fcinfo);
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* The value of a setting, or NULL; an error if the setting does not allow it. */
static const char *
given_value(Jsonb *settings, int setting)
{
	const char *name = known_settings[setting].name;
	JsonbValue	given;
	const char *value = NULL;
	const char *word;

	if (getKeyJsonValueFromContainer(&settings->root, name, strlen(name), &given) == NULL)
		return NULL;
	if (given.type == jbvString)
		value = pnstrdup(given.val.string.val, given.val.string.len);
	if (!takes_words(setting))
		return value;
	word = canonical_word(setting, value);
	if (word == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for \"%s\": %s", name,
						value ? lockfence_visible(quote_literal_cstr(value)) : "NULL"),
				 errhint("Use one of: %s.", list_words(setting))));
	return word;
}

/* _arguments(settings jsonb): the settings as arguments, without those at their defaults */
Datum
lockfence_arguments(PG_FUNCTION_ARGS)
{
	Jsonb	   *settings = PG_GETARG_JSONB_P(0);
	ArrayBuildState *list = initArrayResult(TEXTOID, CurrentMemoryContext, false);

	for (int i = 0; i < NSETTINGS; i++)
	{
		const char *value = given_value(settings, i);

		if (value != NULL && !is_default(i, value))
			list = accumArrayResult(list,
									CStringGetTextDatum(psprintf("%s=%s", known_settings[i].name, value)),
									false, TEXTOID, CurrentMemoryContext);
	}
	PG_RETURN_DATUM(makeArrayResult(list, CurrentMemoryContext));
}
