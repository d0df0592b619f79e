/*
 * keptname.c
 *		The name of a resource, as shared memory keeps it for all databases: the
 *		beginning of it, in the encoding of its database.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "keptname.h"

/* A name of this database, to be kept. */
KeptName
lockfence_keep_name(const char *name)
{
	KeptName	kept = {.encoding = GetDatabaseEncoding()};

	memcpy(kept.text, name, pg_mbcliplen(name, strlen(name), KEPT_NAME_LEN - 1));
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
