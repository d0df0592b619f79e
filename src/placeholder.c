/*
 * placeholder.c
 *		Resource templates as text: literal parts, and columns named in braces.  This
 *		file knows no tables.
 */
#include "postgres.h"

#include "placeholder.h"

/* The name of the column in the placeholder that begins here. */
static TemplatePartKind
next_column(const char **rest, char **part)
{
	const char *start = *rest + 1;
	const char *end = strpbrk(start, "{}");

	if (end == NULL || *end == '{' || end == start)
		return TEMPLATE_FAULT;
	if (part != NULL)
		*part = pnstrdup(start, end - start);
	*rest = end + 1;
	return TEMPLATE_COLUMN;
}

/*
 * Find the next part of a template and move on behind it.  Returns the part in *part,
 * unless part is NULL.  A brace that belongs to the text is written twice, and is
 * returned once.
 */
TemplatePartKind
lockfence_next_part(const char **rest, char **part)
{
	const char *p = *rest;
	char	   *text;

	if (*p == '\0')
		return TEMPLATE_END;
	if (*p == '{' && p[1] != '{')
		return next_column(rest, part);
	text = part ? *part = palloc0(strlen(p) + 1) : NULL;
	for (; *p != '\0'; p++)
	{
		if ((*p == '{' || *p == '}') && p[1] == *p)
			p++;
		else if (*p == '{')
			break;
		else if (*p == '}')
			return TEMPLATE_FAULT;
		if (text != NULL)
			*text++ = *p;
	}
	*rest = p;
	return TEMPLATE_TEXT;
}
