/*
 * keptname.c
 *		The name of a resource, as shared memory keeps it for all databases: the
 *		beginning of it, in the encoding of its database.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "keptname.h"

/* Keep a name of this database.  Returns its length, as far as it is kept. */
size_t
lockfence_set_name(KeptName *kept, const char *name)
{
	size_t		length = strlen(name);

	if (length >= KEPT_NAME_LEN)
		length = pg_mbcliplen(name, length, KEPT_NAME_LEN - 1);
	kept->encoding = GetDatabaseEncoding();
	memcpy(kept->text, name, length);
	kept->text[length] = '\0';
	return length;
}

/* The same, as a value. */
KeptName
lockfence_keep_name(const char *name)
{
	KeptName	kept = {0};

	(void) lockfence_set_name(&kept, name);
	return kept;
}

/* A name of any database, as text: as far as it can be shown in this one. */
Datum
lockfence_kept_name(const KeptName *kept)
{
	char	   *text = pstrdup(kept->text);

	for (char *c = text; kept->encoding != GetDatabaseEncoding() && *c != '\0'; c++)
	{
		if (IS_HIGHBIT_SET(*c))
			*c = '?';
	}
	return CStringGetTextDatum(text);
}
