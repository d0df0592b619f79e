/*
 * visible.c
 *		Names that others chose, as a message, a log line or a remedy can carry
 *		them.
 *
 * A name can contain any character.  A raw line break ends a line of the log or a
 * comment, an escape sequence moves a terminal's cursor, and a bidirectional
 * control shows the reader another text than the server runs.  So these characters
 * are written as their numbers: in text as \u000a, in SQL by Unicode escapes, which
 * the server reads as the same character.  All others stay as they are.
 *
 * In encodings other than UTF-8, a byte from 0x80 on is a control character only
 * in ISO 8859, or may be one if the encoding is not known.  A statement with such
 * an escape fails if the server cannot convert the character.
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "compat.h"
#include "visible.h"

PG_FUNCTION_INFO_V1(lockfence_visible_sql);
PG_FUNCTION_INFO_V1(lockfence_identifier);
PG_FUNCTION_INFO_V1(lockfence_literal);

/* Does the character act instead of being visible: a terminal control, a line separator, a bidirectional control? */
static bool
is_unseen(pg_wchar code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) ||
		code == 0x061c || code == 0x200e || code == 0x200f ||
		(code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Is each byte from 0x80 on a character of its own, and are those from 0x80 on controls? */
static bool
has_upper_controls(int encoding)
{
	return encoding == PG_SQL_ASCII ||
		(encoding >= PG_LATIN1 && encoding <= PG_LATIN10) ||
		(encoding >= PG_ISO_8859_5 && encoding <= PG_ISO_8859_8);
}

/* The length in bytes of the invisible character at the start of the text, and its code; 0: it is visible. */
static int
unseen_at(const char *text, pg_wchar *code)
{
	const unsigned char *bytes = (const unsigned char *) text;
	int			encoding = GetDatabaseEncoding();
	int			length = 1;

	*code = bytes[0];
	if (encoding == PG_UTF8 && IS_HIGHBIT_SET(bytes[0]))
	{
		length = pg_utf_mblen(bytes);
		if ((int) strnlen(text, length) < length)
			return 0;
		*code = utf8_to_unicode(bytes);
	}
	else if (IS_HIGHBIT_SET(bytes[0]) && !has_upper_controls(encoding))
		return 0;
	return is_unseen(*code) ? length : 0;
}

/* Does the text contain an invisible character? */
static bool
has_unseen(const char *text)
{
	pg_wchar	code;

	for (; *text != '\0'; text++)
	{
		/* the second byte of a character is never the first of an invisible one */
		if (unseen_at(text, &code) > 0)
			return true;
	}
	return false;
}

/* The text with each invisible character as a number, in that format, and each character of "doubled" doubled. */
static char *
escape(const char *before, const char *text, const char *format, const char *doubled, const char *after)
{
	StringInfoData escaped;

	initStringInfo(&escaped);
	appendStringInfoString(&escaped, before);
	while (*text != '\0')
	{
		pg_wchar	code;
		int			length = unseen_at(text, &code);

		if (length > 0)
			appendStringInfo(&escaped, format, code);
		else
		{
			length = 1;
			if (strchr(doubled, *text) != NULL)
				appendStringInfoChar(&escaped, *text);
			appendStringInfoChar(&escaped, *text);
		}
		text += length;
	}
	appendStringInfoString(&escaped, after);
	return escaped.data;
}

/* A name or another text, for a message or a line of the log */
const char *
lockfence_visible(const char *text)
{
	return text == NULL || !has_unseen(text) ? text : escape("", text, "\\u%04x", "", "");
}

/* _visible(text) */
Datum
lockfence_visible_sql(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(lockfence_visible(text_to_cstring(PG_GETARG_TEXT_PP(0)))));
}

/* _identifier(text): a name as an SQL identifier */
Datum
lockfence_identifier(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));

	PG_RETURN_TEXT_P(cstring_to_text(has_unseen(name) ?
									 escape("U&\"", name, "\\%04x", "\\\"", "\"") :
									 quote_identifier(name)));
}

/* _literal(text): a text as an SQL literal, valid whatever standard_conforming_strings is */
Datum
lockfence_literal(PG_FUNCTION_ARGS)
{
	char	   *value = text_to_cstring(PG_GETARG_TEXT_PP(0));

	PG_RETURN_TEXT_P(cstring_to_text(has_unseen(value) ?
									 escape("E'", value, "\\u%04x", "\\'", "'") :
									 quote_literal_cstr(value)));
}
