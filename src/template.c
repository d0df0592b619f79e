/*
 * template.c
 *		Resource names: the template of a fence, and the names that rows give it.
 *
 * A name must not depend on the session: two sessions that print the same value
 * differently would write under different marks.  So while a name is made, the
 * settings on which a type's text form may depend are pinned, unless the type is
 * known to depend on none.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "fencedef.h"
#include "lockfence.h"
#include "placeholder.h"
#include "readable.h"
#include "template.h"
#include "trigarg.h"
#include "visible.h"

/* Add a part to the template: literal text, or the name of a column. */
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
	part->length = strlen(text);
	return part;
}

/*
 * Split a template into text and column names.  The part of a column has its name
 * in `literal`, and attno -1, until lockfence_resolve_template() replaces it.
 */
void
lockfence_split_template(Fence *fence, const char *template)
{
	SettingFault fault = lockfence_template_fault(template);
	TemplatePartKind kind;
	char	   *part;

	lockfence_raise_fault(&fault);
	fence->constant = true;
	while ((kind = lockfence_next_part(&template, &part)) != TEMPLATE_END)
	{
		if (kind == TEMPLATE_COLUMN)
		{
			add_part(fence, part)->attno = -1;
			fence->constant = false;
		}
		else
			add_part(fence, part);
	}
	if (fence->nparts == 0)
		add_part(fence, pstrdup(""));
}

/* The number of a column that the fence needs. */
AttrNumber
lockfence_resolve_column(Relation rel, const char *column)
{
	AttrNumber	attno = get_attnum(RelationGetRelid(rel), column);

	if (attno <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" that the fence of table \"%s\" needs does not exist",
						lockfence_visible(column), lockfence_visible(RelationGetRelationName(rel))),
				 errdetail("It was renamed or dropped after the fence was attached. The fence rejects all writes, or reports them if it is advisory."),
				 errhint("Declare the fence again by lockfence.detach() and lockfence.attach()."),
				 errtable(rel)));
	if (TupleDescAttr(RelationGetDescr(rel), attno - 1)->attgenerated)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a fence cannot use generated column \"%s\"", lockfence_visible(column)),
				 errdetail("Its value is not yet computed when the fence decides."),
				 errtablecol(rel, attno)));
	return attno;
}

/*
 * Take in the type of the token column, which must be able to hold tokens or, if it is
 * only read, numbers.
 */
void
lockfence_take_token_type(Fence *fence, Oid type)
{
	Oid			base = getBaseType(type);

	if (base != INT8OID && !(fence->reads_column && (base == INT4OID || base == INT2OID)))
		lockfence_refuse_setting(psprintf("token_column=%s", fence->token_column),
								 fence->reads_column ? "The column must be of type smallint, integer or bigint." :
								 "The column must be of type lockfence.fence_token or bigint.");
	fence->token_width = get_typlen(base);
	fence->wide_attno = fence->token_width == sizeof(FenceToken) ? fence->token_attno : 0;
}

/* Is the text form of a type independent of the session's settings? */
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

/*
 * Does the text of a value follow from the value alone, under pinned settings?  An
 * enum value, or an OID of an object, is printed as a name, which can change.
 */
static bool
text_follows_value(Oid type)
{
	switch (getBaseType(type))
	{
		case BOOLOID:
		case CHAROID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return true;
		default:
			return false;
	}
}

/* Is the length of a resource's name within the limits? */
static bool
is_name_length(int length)
{
	return length > 0 && length <= LOCKFENCE_MAX_RESOURCE_LEN;
}

/* Raise an error unless it is; the length is told only to a role that may read the columns. */
static void
check_length(const Fence *fence, Relation rel, int length)
{
	if (!is_name_length(length))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("resource name must be 1 to %d bytes long",
						LOCKFENCE_MAX_RESOURCE_LEN),
				 lockfence_may_read(rel, fence) ?
				 errdetail("With the row's values, the template \"%s\" makes a name of %d bytes.",
						   lockfence_visible(fence->resource), length) :
				 errdetail("With the row's values, the template \"%s\" makes no such name.",
						   lockfence_visible(fence->resource))));
}

/* Find the columns of the template, and the output functions of their values. */
void
lockfence_resolve_template(Fence *fence, Relation rel)
{
	int			nkeys = 0;
	int			max_length = 0;
	bool		integers = true;

	if (fence->constant)
		check_length(fence, rel, strlen(fence->parts[0].literal));
	for (int i = 0; i < fence->nparts; i++)
	{
		TemplatePart *part = &fence->parts[i];
		Oid			type;
		Oid			output;
		bool		is_varlena;

		max_length += part->attno == 0 ? part->length : MAXINT8LEN;
		if (part->attno == 0)
			continue;
		part->attno = lockfence_resolve_column(rel, part->literal);
		part->literal = NULL;
		type = TupleDescAttr(RelationGetDescr(rel), part->attno - 1)->atttypid;
		fence->key_attno = nkeys++ == 0 && get_typbyval(type) &&
			text_follows_value(type) ? part->attno : 0;
		fence->last_attno = Max(fence->last_attno, part->attno);
		part->type = getBaseType(type);
		integers = integers && (part->type == INT4OID || part->type == INT8OID);
		getTypeOutputInfo(type, &output, &is_varlena);
		fmgr_info_cxt(output, &part->output, CurrentMemoryContext);
		if (!output_is_fixed(type))
			fence->pin_settings = true;
	}
	fence->max_length = integers ? max_length : 0;
}

/* Pin every setting on which the text form of a value may depend. */
static int
pin_settings(void)
{
	static const char *const settings[][2] = {
		{"DateStyle", "ISO, YMD"}, {"IntervalStyle", "postgres"},
		{"TimeZone", "UTC"}, {"extra_float_digits", "1"},
		{"bytea_output", "hex"}, {"lc_monetary", "C"},
		{"quote_all_identifiers", "off"},
		/* a path without pg_temp would have it searched first */
		{"search_path", "pg_catalog, pg_temp"}
	};
	int			level = NewGUCNestLevel();

	for (int i = 0; i < lengthof(settings); i++)
		(void) set_config_option(settings[i][0], settings[i][1], PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

/* Raise the error for a null in a column that names the resource. */
static void
refuse_null_placeholder(Relation rel, AttrNumber attno)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("null value in column \"%s\" names no resource",
					lockfence_visible(NameStr(TupleDescAttr(RelationGetDescr(rel), attno - 1)->attname))),
			 errdetail("The fence of table \"%s\" names its resource by this column.",
					   lockfence_visible(RelationGetRelationName(rel))),
			 errhint("Set the column, and declare it NOT NULL."),
			 errtablecol(rel, attno)));
}

/* The same as format_resource(), for a template of text and integers only. */
static char *
format_integers(const Fence *fence, const Datum *values, int *length)
{
	char	   *name = palloc(fence->max_length + 1);
	char	   *end = name;

	for (int i = 0; i < fence->nparts; i++)
	{
		const TemplatePart *part = &fence->parts[i];

		if (part->literal != NULL)
		{
			memcpy(end, part->literal, part->length);
			end += part->length;
			continue;
		}
		if (part->type == INT4OID)
			pg_ltoa(DatumGetInt32(values[i]), end);
		else
			pg_lltoa(DatumGetInt64(values[i]), end);
		end += strlen(end);
	}
	*end = '\0';
	*length = end - name;
	return name;
}

/* The text of a part; for a column, of its value. */
static const char *
format_part(const Fence *fence, const TemplatePart *part, Datum value)
{
	char	   *text;

	if (part->literal != NULL)
		return part->literal;
	text = OutputFunctionCall((FmgrInfo *) &part->output, value);
	if (fence->unpadded && part->type == BPCHAROID)
		text[bpchartruelen(text, strlen(text))] = '\0';
	return text;
}

/*
 * Fill in the template.  values[i] belongs to part i.  The caller checks the length
 * of the result.
 */
static char *
format_resource(const Fence *fence, const Datum *values, int *length)
{
	StringInfoData name;
	int			level;

	if (fence->max_length > 0)
		return format_integers(fence, values, length);
	level = fence->pin_settings ? pin_settings() : 0;

	initStringInfo(&name);
	for (int i = 0; i < fence->nparts; i++)
		appendStringInfoString(&name, format_part(fence, &fence->parts[i], values[i]));
	if (fence->pin_settings)
		AtEOXact_GUC(true, level);

	*length = name.len;
	return name.data;
}

/*
 * Fill in the template with the row's values; NULL if one of them is null, and
 * then *null_attno tells which.
 */
static inline char *
format_slot(const Fence *fence, TupleTableSlot *slot, int *length, AttrNumber *null_attno)
{
	Datum		few[8];
	Datum	   *values = fence->nparts <= lengthof(few) ? few :
		palloc(fence->nparts * sizeof(Datum));

	for (int i = 0; i < fence->nparts; i++)
	{
		AttrNumber	attno = fence->parts[i].attno;
		bool		isnull;

		if (attno == 0)
			continue;
		values[i] = slot_getattr(slot, attno, &isnull);
		if (isnull)
		{
			*null_attno = attno;
			return NULL;
		}
	}
	return format_resource(fence, values, length);
}

/* The resource that a row belongs to; an error if its values name none. */
char *
lockfence_slot_resource(const Fence *fence, Relation rel, TupleTableSlot *slot)
{
	int			length;
	AttrNumber	null_attno = InvalidAttrNumber;
	char	   *name = format_slot(fence, slot, &length, &null_attno);

	if (name == NULL)
		refuse_null_placeholder(rel, null_attno);
	check_length(fence, rel, length);
	return name;
}

/*
 * The same, but NULL if there is none: then the row could not be written through
 * the fence, and is older than it.
 */
char *
lockfence_find_resource(const Fence *fence, TupleTableSlot *slot)
{
	int			length;
	AttrNumber	null_attno = InvalidAttrNumber;
	char	   *name = format_slot(fence, slot, &length, &null_attno);

	return name != NULL && is_name_length(length) ? name : NULL;
}

/*
 * The resource that column values, by attribute number - 1, name; NULL if one of
 * its columns is missing, or if they name none.
 */
char *
lockfence_values_resource(const Fence *fence, const Datum *values, const bool *missing)
{
	Datum	   *part_values = palloc(fence->nparts * sizeof(Datum));
	int			length;
	char	   *name;

	for (int i = 0; i < fence->nparts; i++)
	{
		AttrNumber	attno = fence->parts[i].attno;

		if (attno == 0)
			continue;
		if (missing[attno - 1])
			return NULL;
		part_values[i] = values[attno - 1];
	}
	name = format_resource(fence, part_values, &length);
	return is_name_length(length) ? name : NULL;
}

/* The resource of a fence whose template has no placeholder. */
char *
lockfence_constant_resource(const Fence *fence)
{
	Assert(fence->constant && fence->nparts == 1);
	return fence->parts[0].literal;
}

/* Do both rows name the same resource, byte for byte? */
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
