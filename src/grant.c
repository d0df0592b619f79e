/*
 * grant.c
 *		The grant of the whole session: tokens that the client gives when it connects.
 *
 * The setting lockfence.session_grant has a token per line: "resource=token", or
 * "token" alone for the ambient one.  The token comes after the last "=", so a name
 * needs no escaping; only a name with a line break cannot be given.  "@" and an instant
 * may follow the token, from which on it does not count any more.  Each transaction
 * of the session is as if it had presented these tokens first.  Nothing is done in a
 * transaction that writes to no fenced table.
 *
 * The value counts only if the client gave it with the connection.  That is the one
 * place from which it cannot reach another client: SET cannot change it (PGC_BACKEND),
 * and what a configuration file, a role or a database sets would be the grant of all
 * their sessions at once.  While the library is not loaded the setting is a placeholder,
 * which SET can change.  When it is then defined, the server assigns the placeholder's
 * values anew, by the rules of the real setting and with their sources: the client's
 * value is taken, and all others are dropped with a warning.
 *
 * The privilege to call present() is that of the session's role, as if the session had
 * called it before anything else.  SET ROLE and functions that run as their owner
 * neither give a session that privilege nor take it away.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "compat.h"
#include "grant.h"
#include "instant.h"
#include "lockfence.h"
#include "visible.h"

/* setting */
char	   *lockfence_session_grant;

/* the setting as it was read, which happens once */
static bool is_read = false;
static const char *problem = NULL;	/* why it cannot be read; NULL: it can */
static Grant *grants = NULL;
static int	ngrants = 0;

static uint64 changes = 1;		/* of what privileges follow from, as far as this backend knows */
static uint64 permitted_changes = 0;	/* as of which present() was permitted ... */
static Oid	permitted_role = InvalidOid;	/* ... to this role */

/* A function, a role or a membership has changed, or what is of no interest here. */
void
lockfence_grant_at_syscache(int cacheid)
{
	changes++;
}

/* Take the setting from clients alone. */
static bool
check_source(char **value, void **extra, GucSource source)
{
	if (source == PGC_S_DEFAULT || source == PGC_S_CLIENT || (*value)[0] == '\0')
		return true;
	GUC_check_errdetail("A grant is given by its holder, when it connects: a value that is set for a server, a database or a role has no effect.");
	return false;
}

/* Called once per backend, or by the postmaster. */
void
lockfence_grant_init(void)
{
	DefineCustomStringVariable("lockfence.session_grant",
							   "Gives the tokens that every transaction of the session presents.",
							   "\"token\" or \"resource=token\", each in a line of its own.",
							   &lockfence_session_grant, "", PGC_BACKEND,
							   GUC_DISALLOW_IN_FILE, check_source, NULL, NULL);
}

/* What makes a line of the setting unreadable. */
static const char *
describe_problem(const char *line, const char *what)
{
	return MemoryContextStrdup(TopMemoryContext,
							   psprintf("The setting's line \"%s\" %s.", lockfence_visible(line), what));
}

/* Digits as a token; 0: they are none. */
static FenceToken
read_token(const char *digits)
{
	char	   *end;
	int64		token;

	if (digits[0] == '\0' || strspn(digits, "0123456789") != strlen(digits))
		return 0;
	errno = 0;
	token = strtoll(digits, &end, 10);
	return errno == 0 ? token : 0;
}

/* Read a line, which is taken apart; returns what is wrong with it, or NULL. */
static const char *
read_line(char *line, Grant *grant)
{
	char	   *equals = strrchr(line, '=');
	char	   *at = strchr(equals ? equals : line, '@');

	grant->valid_until = 0;
	if (at != NULL && !lockfence_read_instant(at + 1, &grant->valid_until))
		return "does not end with an instant after its \"@\"";
	if (at != NULL)
		*at = '\0';
	grant->resource = equals ? line : NULL;
	grant->token = read_token(equals ? equals + 1 : line);
	if (grant->token == 0)
		return "does not end with a token";
	if (equals == line || (equals && equals - line > LOCKFENCE_MAX_RESOURCE_LEN))
		return "names a resource whose name is empty or too long";
	if (equals)
		*equals = '\0';
	if (lockfence_find_grant(grant->resource) != NULL)
		return grant->resource ? "names a resource for the second time" :
			"is the second token without a resource";
	return NULL;
}

/* Read the setting, line by line, up to the first one that cannot be read. */
static void
read_grants(void)
{
	char	   *rest = MemoryContextStrdup(TopMemoryContext, lockfence_session_grant);
	int			nlines = 1;

	if (!pg_verifymbstr(rest, strlen(rest), true))
	{
		problem = "The setting is not valid text in the encoding of the database.";
		return;
	}
	for (const char *c = rest; *c != '\0'; c++)
		nlines += *c == '\n';
	grants = MemoryContextAlloc(TopMemoryContext, nlines * sizeof(Grant));
	while (problem == NULL && rest != NULL)
	{
		char	   *line = strsep(&rest, "\n");
		char	   *copy = pstrdup(line);
		const char *what = read_line(line, &grants[ngrants]);

		if (what != NULL)
			problem = describe_problem(copy, what);
		else
			ngrants++;
	}
}

/* Why the setting cannot be read; NULL: it can. */
const char *
lockfence_grant_problem(void)
{
	if (!is_read)
	{
		ngrants = 0;
		read_grants();
		is_read = true;
	}
	return problem;
}

/* The grant of the resource, or of whatever is written (NULL); NULL: there is none. */
const Grant *
lockfence_find_grant(const char *resource)
{
	for (int i = 0; i < ngrants; i++)
	{
		if (resource == NULL ? grants[i].resource == NULL :
			grants[i].resource != NULL && strcmp(grants[i].resource, resource) == 0)
			return &grants[i];
	}
	return NULL;
}

/* A resource that the token was granted for; NULL: none. */
const char *
lockfence_granted_resource(FenceToken token)
{
	for (int i = 0; i < ngrants; i++)
	{
		if (grants[i].resource != NULL && grants[i].token == token)
			return grants[i].resource;
	}
	return NULL;
}

/* Show a visitor what was granted. */
void
lockfence_visit_grants(GrantVisitor visit, void *arg)
{
	for (int i = 0; i < ngrants; i++)
		visit(&grants[i], arg);
}

/* Require the privilege of the session's role to call present() with these arguments. */
static void
require_execute(Oid role, int nargs, const Oid *args, const char *signature)
{
	Oid			function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
										   CStringGetDatum("present"),
										   PointerGetDatum(buildoidvector(args, nargs)),
										   ObjectIdGetDatum(get_namespace_oid(LOCKFENCE_SCHEMA, false)));

	if (!OidIsValid(function) || !lockfence_may_execute(function, role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function present"),
				 errdetail("Setting lockfence.session_grant takes the privilege to call %s, which role \"%s\" does not have.",
						   signature, lockfence_visible(GetUserNameFromId(role, false)))));
}

/*
 * Require that the session may present what it was granted.  What privileges follow
 * from changes by invalidation messages, as for every other check of privileges, and
 * so an answer is good until the next message.
 */
void
lockfence_require_grant_privilege(void)
{
	Oid			role = GetSessionUserId();
	uint64		before = changes;
	Oid			args[2] = {TEXTOID};
	bool		has_ambient;

	if (permitted_changes == before && permitted_role == role)
		return;
	has_ambient = lockfence_find_grant(NULL) != NULL;
	args[1] = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("fence_token"),
							  ObjectIdGetDatum(get_namespace_oid(LOCKFENCE_SCHEMA, false)));
	if (has_ambient)
		require_execute(role, 1, &args[1], "lockfence.present(lockfence.fence_token)");
	if (ngrants > has_ambient)
		require_execute(role, 2, args, "lockfence.present(text, lockfence.fence_token)");
	permitted_role = role;
	permitted_changes = before;
}
