/*
 * grant.c
 *		The grant as lockfence.session_grant has it, and as an option for the start of
 *		a session.
 */
#include "grant.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

static const char SETTING[] = "-c lockfence.session_grant=";

/* The setting's value: a grant per line, and in it the token behind the last "=".  The caller frees it. */
char *
grant_joined(const char *others, const char *resource, const char *token)
{
	char	   *grants;
	bool		first = others == NULL || others[0] == '\0';

	if (asprintf(&grants, "%s%s%s=%s", first ? "" : others, first ? "" : "\n", resource, token) < 0)
		fail("out of memory");
	return grants;
}

/*
 * The server splits the options at white space, and takes the character after a
 * backslash as it is (pg_split_opts); nothing else is special in them.
 */
static char *
append_escaped(char *to, const char *from)
{
	for (; *from != '\0'; from++)
	{
		if (strchr(" \t\n\v\f\r\\", *from) != NULL)
			*to++ = '\\';
		*to++ = *from;
	}
	return to;
}

/* The options, and the grants behind them; of a setting that is given twice the last value counts.  The caller frees it. */
char *
grant_as_option(const char *options, const char *grants)
{
	size_t		given = options != NULL ? strlen(options) : 0;
	char	   *joined = malloc(given + 1 + sizeof(SETTING) + 2 * strlen(grants) + 1);
	char	   *end = joined;

	if (joined == NULL)
		fail("out of memory");
	if (given > 0)
	{
		memcpy(end, options, given);
		end += given;
		*end++ = ' ';
	}
	memcpy(end, SETTING, sizeof(SETTING) - 1);
	end = append_escaped(end + sizeof(SETTING) - 1, grants);
	*end = '\0';
	return joined;
}
