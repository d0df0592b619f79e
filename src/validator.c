/*
 * validator.c
 *		Asking a validator whether a token was granted.
 *
 * A fence names its validator, which the table's owner must be allowed to execute.
 * lockfence.validator names the default one, for present(resource, token) and for
 * fences that name none.  Both run as the role that writes, which needs no privilege
 * for it.
 *
 * A validator is asked about a token that would raise a mark, before any lock is
 * taken.  A row fence cannot do so: its mark is the row, which is locked when the
 * guard is called, and no lock service knows a row's name.  Under a default
 * validator it takes a higher token only when the transaction has had it accepted
 * for a named resource, by present() or another fence.
 *
 * The default is named by a setting and looked up in pg_catalog alone, so that
 * no session's search_path leads to another function.  What was found is kept until
 * the catalogs or the setting change, which is only counted.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "attempt.h"
#include "check.h"
#include "lockfence.h"
#include "readable.h"
#include "refuse.h"
#include "stats.h"
#include "validator.h"
#include "visible.h"
#include "xact.h"

PG_FUNCTION_INFO_V1(lockfence_is_validator);

/* setting */
static char *default_validator;

static int	times_assigned = 0;
static bool default_is_hidden = false;

static Oid	default_oid = InvalidOid;
static uint64 changes = 1;		/* of what it may follow from */
static uint64 known_changes = 0;	/* as of which it is known; 0: it is not */

/* The write on whose behalf a validator runs. */
static const FencedWrite *asking_for = NULL;

/* A function, a type or a schema has changed, or what is of no interest here. */
void
lockfence_validator_at_syscache(int cacheid)
{
	changes++;
}

static void
assign_default(const char *value, void *extra)
{
	times_assigned++;
	default_is_hidden = false;
	changes++;
}

/*
 * Called once per backend, or by the postmaster.
 *
 * A client that connects with a value of its own replaces the server's: until the
 * library is loaded the setting is a placeholder, which every role may set.
 * PostgreSQL discards that value when the setting is defined, and then assigns
 * nothing but the empty preset; which function the server has named is not known
 * any more.
 */
void
lockfence_validator_init(void)
{
	bool		was_set = GetConfigOption("lockfence.validator", true, false) != NULL;

	DefineCustomStringVariable("lockfence.validator",
							   "Names the function that is asked before a token raises a mark.",
							   "For present(resource, token), and for fences without a validator of their own, as a signature with schemas.",
							   &default_validator, "", PGC_SUSET, 0,
							   NULL, assign_default, NULL);
	default_is_hidden = was_set && times_assigned == 1;
}

static bool
has_default(void)
{
	return default_validator[0] != '\0' || default_is_hidden;
}

/*
 * Is there a validator to call before the token advances the mark?  Not where a
 * function that runs as its owner presents what the database has issued: the
 * validator, which may be another role's, would run with that owner's rights.
 */
bool
lockfence_has_validator(const FenceCheck *check)
{
	return !check->by_administrator && (OidIsValid(check->validator) || has_default());
}

/* Does the function take a resource and a token, and say yes or no? */
static bool
is_fit(Oid validator)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(validator));
	Form_pg_proc proc;
	bool		fit;

	if (!HeapTupleIsValid(tuple))
		return false;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	fit = proc->prokind == PROKIND_FUNCTION && !proc->proretset &&
		proc->prorettype == BOOLOID && proc->pronargs == 2 &&
		proc->proargtypes.values[0] == TEXTOID &&
		getBaseType(proc->proargtypes.values[1]) == INT8OID;
	ReleaseSysCache(tuple);
	return fit;
}

/* _is_validator(function oid) */
Datum
lockfence_is_validator(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(is_fit(PG_GETARG_OID(0)));
}

/* Refuse to go on without the default validator. */
static void
refuse_default(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
			 errmsg("could not call the default validator"),
			 errdetail_internal("%s", detail),
			 errhint("Have an administrator set lockfence.validator to a function of (resource text, token lockfence.fence_token) that returns boolean, with its schema and the types of its arguments, or to an empty string.")));
}

/* The function that the setting names; InvalidOid: there is none. */
static Oid
look_up_default(void)
{
	LOCAL_FCINFO(fcinfo, 1);
	Oid			user;
	int			context;
	int			level = NewGUCNestLevel();
	Datum		found;

	/* as a superuser: its schema may be closed to the role that writes */
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID, context | SECURITY_LOCAL_USERID_CHANGE);
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	InitFunctionCallInfoData(*fcinfo, NULL, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = CStringGetTextDatum(default_validator);
	fcinfo->args[0].isnull = false;
	found = to_regprocedure(fcinfo);
	AtEOXact_GUC(true, level);
	SetUserIdAndSecContext(user, context);
	return fcinfo->isnull ? InvalidOid : DatumGetObjectId(found);
}

/* Is it an error of what the setting says, rather than of this session? */
static bool
is_of_setting(int sqlstate)
{
	int			category = ERRCODE_TO_CATEGORY(sqlstate);

	return category == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION ||
		category == ERRCODE_INVALID_SCHEMA_NAME;
}

/* The same, where what the setting says may be no signature at all. */
static Oid
try_look_up_default(void)
{
	Oid			found = InvalidOid;

	PG_TRY();
	{
		found = look_up_default();
	}
	PG_CATCH();
	{
		if (!is_of_setting(geterrcode()))
			PG_RE_THROW();
		FlushErrorState();
		refuse_default(psprintf("There is no function \"%s\".", lockfence_visible(default_validator)));
	}
	PG_END_TRY();
	return found;
}

/*
 * The default validator; an error where there is none that could be asked, which
 * is to be caught by a subtransaction's end.
 */
static Oid
find_default(void)
{
	if (default_is_hidden)
		refuse_default("The session was started with a lockfence.validator that it may not set, instead of the server's.");
	while (known_changes != changes)
	{
		uint64		before = changes;
		Oid			found = try_look_up_default();

		if (!OidIsValid(found))
			refuse_default(psprintf("There is no function \"%s\".", lockfence_visible(default_validator)));
		if (!is_fit(found))
			refuse_default(psprintf("Function \"%s\" is not one of a resource and a token that returns boolean.",
									lockfence_visible(default_validator)));
		default_oid = found;
		known_changes = before;
	}
	return default_oid;
}

/* The fence's own validator, which may be gone. */
static Oid
find_own(const FenceCheck *check)
{
	if (!SearchSysCacheExists1(PROCOID, ObjectIdGetDatum(check->validator)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("the validator of the fence of table \"%s\" does not exist",
						lockfence_visible(RelationGetRelationName(check->write.rel))),
				 errdetail("It was dropped after the fence was attached."),
				 errhint("Declare the fence again by lockfence.detach() and lockfence.attach()."),
				 errtable(check->write.rel)));
	return check->validator;
}

/* One question to a validator. */
typedef struct Question
{
	const FenceCheck *check;
	Oid			validator;
	bool		valid;
} Question;

/* Find the validator and call it; true is a yes, and nothing else is. */
static void
call_validator(void *arg)
{
	Question   *question = (Question *) arg;
	const FenceCheck *check = question->check;
	FmgrInfo	flinfo;
	LOCAL_FCINFO(fcinfo, 2);
	Datum		valid;

	question->validator = OidIsValid(check->validator) ? find_own(check) : find_default();
	fmgr_info(question->validator, &flinfo);
	InitFunctionCallInfoData(*fcinfo, &flinfo, 2, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = CStringGetTextDatum(check->write.resource);
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = Int64GetDatum(check->token);
	fcinfo->args[1].isnull = false;
	lockfence_count(check->write.rel, LOCKFENCE_VALIDATOR_CALLS);
	valid = FunctionCallInvoke(fcinfo);
	question->valid = !fcinfo->isnull && DatumGetBool(valid);
}

/*
 * Ask the validator; refuses the token on a no, or where the validator gets no
 * answer.  Returns false then: on an advisory fence.
 */
bool
lockfence_ask_validator(const FenceCheck *check)
{
	const FencedWrite *before = asking_for;
	Question	question = {.check = check};
	ErrorData  *error;

	asking_for = &check->write;
	PG_TRY();
	{
		error = lockfence_attempt(call_validator, &question);
	}
	PG_FINALLY();
	{
		asking_for = before;
	}
	PG_END_TRY();
	if (error != NULL)
	{
		lockfence_count(check->write.rel, LOCKFENCE_VALIDATOR_FAILURES);
		if (error->sqlerrcode != ERRCODE_FENCE_VALIDATOR_UNAVAILABLE)
			ReThrowError(error);
		lockfence_refuse_unavailable(&check->write, check->token, error);
	}
	else if (!question.valid)
		lockfence_refuse_unvalidated(&check->write, check->token, question.validator);
	return question.valid;
}

/* A validator that could not ask its service has said yes all the same. */
void
lockfence_count_open(void)
{
	lockfence_count(asking_for ? asking_for->rel : NULL, LOCKFENCE_VALIDATOR_OPEN);
}

/* What a validator may say to the caller: of the resource, no more than the fence would. */
const char *
lockfence_visible_to_asker(const char *text)
{
	if (asking_for != NULL && strcmp(text, asking_for->resource) == 0)
		return lockfence_readable_resource(asking_for);
	return lockfence_visible(text);
}

/*
 * May the token raise the mark in a row?  Under a default validator, if this
 * transaction has had it accepted elsewhere.
 */
bool
lockfence_vouch_for(const FencedWrite *write, FenceToken token)
{
	if (!has_default() || lockfence_holds_token(token))
		return true;
	lockfence_refuse_unvouched(write, token);
	return false;
}
