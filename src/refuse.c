/*
 * refuse.c
 *		One function per refusal: what it says, in the words of refusals.def.
 *
 * Each refusal is first handed to the sink, which lockfence.c sets, and which keeps
 * what can be seen of it afterwards.  On an advisory fence (advisory.c) a refusal is a
 * report in the server's log, and the function returns; on any other fence it is an
 * error, and the function does not return.
 */
#include "postgres.h"

#include "access/genam.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

#include "check.h"
#include "grant.h"
#include "lockfence.h"
#include "readable.h"
#include "refuse.h"
#include "settings.h"
#include "token.h"
#include "visible.h"
#include "xact.h"

/* The messages of refusals.def. */
typedef enum RefusalMessage
{
#define MESSAGE(kind, name, message, hint) REFUSED_##kind,
#include "refusals.def"
} RefusalMessage;

static const struct
{
	int			sqlstate;
	const char *text;
	const char *hint;
}			messages[] = {
#define MESSAGE(kind, name, message, hint) [REFUSED_##kind] = {ERRCODE_##name, message, hint},
#include "refusals.def"
};

/* One refusal: what is told of it, and in which words. */
typedef struct Refused
{
	RefusalMessage message;
	FenceToken	token;			/* presented; 0: none */
	FenceToken	mark;			/* what it was compared with; 0: nothing */
	TimestampTz risen_at;		/* when the mark became that; 0: not known */
	const char *subject;		/* in the message; NULL: the resource */
	const char *detail;			/* or NULL */
	const char *hint;			/* NULL: the message's own, if it has one */
	int			report_level;	/* for the client, where it is only reported; 0: LOG */
} Refused;

static RefusalSink sink = NULL;

/* Set the function that is handed each refusal before it is raised. */
void
lockfence_set_refusal_sink(RefusalSink function)
{
	sink = function;
}

/*
 * A row as a resource: its table and, as far as the caller may see it, its
 * primary key.
 */
char *
lockfence_row_name(Relation rel, TupleTableSlot *row)
{
	char	   *table = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
												   RelationGetRelationName(rel));
	Relation	index;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	char	   *key;

	if (row == NULL)
		return table;
	list_free(RelationGetIndexList(rel));	/* fills in rd_pkindex */
	if (!OidIsValid(rel->rd_pkindex))
		return psprintf("a row of %s", table);

	index = index_open(rel->rd_pkindex, AccessShareLock);
	FormIndexDatum(BuildIndexInfo(index), row, NULL, values, isnull);
	key = BuildIndexValueDescription(index, values, isnull);
	index_close(index, AccessShareLock);
	return psprintf("%s%s%s", table, key ? " " : "", key ? key : "");
}

/* The resource as messages name it. */
static const char *
resource_name(const FencedWrite *write)
{
	return write->resource || write->rel == NULL ? write->resource :
		lockfence_row_name(write->rel, write->row);
}

/* Hand a refusal to the sink, unless it concerns no resource, such as that of an invalid argument. */
static void
tell_sink(const FencedWrite *write, int sqlstate, const Refused *refused)
{
	Refusal		refusal = {
		.sqlstate = sqlstate,
		.resource = resource_name(write),
		.token = refused->token,
		.mark = refused->mark,
		.risen_at = refused->risen_at
	};

	if (refusal.resource != NULL && sink != NULL)
		sink(write, &refusal);
}

/* The resource, as a message may carry it. */
static const char *
name_in_message(const FencedWrite *write)
{
	return write->resource ? lockfence_readable_resource(write) :
		lockfence_visible(resource_name(write));
}

/* The table likewise. */
static const char *
table_name(const FencedWrite *write)
{
	return lockfence_visible(RelationGetRelationName(write->rel));
}

/* The table and schema fields, for a write to a table. */
static int
report_table(const FencedWrite *write)
{
	return write->rel ? errtable(write->rel) : 0;
}

/* Mark a report as one, in the log. */
static int
report_advisory(const FencedWrite *write)
{
	if (!write->advisory)
		return 0;
	if (write->rel == NULL)
		return lockfence_enforcement == LOCKFENCE_ENFORCE_NONE ?
			errcontext("lockfence.enforcement is \"advisory\": the call went on") : 0;
	return errcontext("advisory fence of table \"%s\": the write went on",
					  table_name(write));
}

/* Report a refusal to the sink, and to the client: as an error unless the fence is advisory. */
static void
refuse(const FencedWrite *write, Refused refused)
{
	int			sqlstate = messages[refused.message].sqlstate;
	const char *subject = refused.subject;
	const char *hint = refused.hint ? refused.hint : messages[refused.message].hint;
	int			level = !write->advisory ? ERROR : refused.report_level ? refused.report_level : LOG;

	tell_sink(write, sqlstate, &refused);
	if (subject == NULL)
		subject = name_in_message(write);
	ereport(level,
			(errcode(sqlstate),
			 errmsg(messages[refused.message].text, subject),
			 refused.detail ? errdetail_internal("%s", refused.detail) : 0,
			 hint ? errhint("%s", hint) : 0,
			 report_table(write), report_advisory(write)));
}

/*
 * An advisory fence could not decide: report the error in which a fence that is not
 * advisory would have ended.
 */
void
lockfence_report_undecided(const FencedWrite *write, const ErrorData *error)
{
	tell_sink(write, error->sqlerrcode, &(Refused) {0});
	ereport(LOG,
			(errcode(error->sqlerrcode),
			 errmsg_internal("%s", lockfence_visible(error->message)),
			 error->detail ? errdetail_internal("%s", lockfence_visible(error->detail)) : 0,
			 error->hint ? errhint("%s", lockfence_visible(error->hint)) : 0,
			 report_table(write), report_advisory(write)));
}

/* The hint of a message.  For the mark of a row, which has no name, it also says how to set it. */
static const char *
stale_hint(const FencedWrite *write, RefusalMessage message)
{
	return write->row == NULL ? messages[message].hint :
		psprintf("%s If the mark of the row is wrong, an administrator can set it by lockfence.reset_mark(target, key, token, reason).",
				 messages[message].hint);
}

/*
 * How many rows were accepted before the one that is refused: a batch learns how far it
 * came.  Of the transaction, since all of it is rolled back.
 */
static const char *
accepted_before(void)
{
	if (lockfence_accepted_rows == 0)
		return "";
	return psprintf(" " UINT64_FORMAT " %s had been accepted before in this transaction.",
					lockfence_accepted_rows, lockfence_accepted_rows == 1 ? "row" : "rows");
}

/* LF001: lower than what has been accepted. */
void
lockfence_refuse_stale(const FencedWrite *write, FenceToken token,
					   FenceToken mark, const char *mark_name, TimestampTz risen_at)
{
	refuse(write, (Refused) {
		.message = REFUSED_STALE,.token = token,.mark = mark,.risen_at = risen_at,
		.detail = psprintf("Presented token %s is lower than the %s %s.%s",
						   lockfence_token_text(token), mark_name,
						   lockfence_token_text(mark), accepted_before()),
		.hint = stale_hint(write, REFUSED_STALE)
	});
}

/* LF001: a single-use fence met the token of an earlier transaction. */
void
lockfence_refuse_repeated(const FencedWrite *write, FenceToken token)
{
	refuse(write, (Refused) {
		.message = REFUSED_REPEATED,.token = token,.mark = token,
		.detail = psprintf("Presented token %s equals the mark, and the fence accepts a token in one transaction only.",
						   lockfence_token_text(token)),
		.hint = stale_hint(write, REFUSED_REPEATED)
	});
}

/* LF001: granted before the lock service raised its epoch. */
void
lockfence_refuse_old_epoch(const FencedWrite *write, FenceToken token, int epoch)
{
	refuse(write, (Refused) {
		.message = REFUSED_OLD_EPOCH,.token = token,
		.detail = psprintf("Presented token %s is of an epoch before the current epoch %d.",
						   lockfence_token_text(token), epoch)
	});
}

/* LF001: the token, or the owner, does not have the lease. */
void
lockfence_refuse_lapsed(const FencedWrite *write, FenceToken token, const char *owner)
{
	refuse(write, (Refused) {
		.message = REFUSED_LAPSED,.token = token,
		.detail = owner != NULL ?
			psprintf("The lease is not held by \"%s\".", lockfence_visible(owner)) :
			psprintf("The lease does not have token %s.", lockfence_token_text(token))
	});
}

/* LF001: the token, or the owner, has no lease, since no grant of the resource is on record. */
void
lockfence_refuse_ungranted(const FencedWrite *write, FenceToken token, const char *owner)
{
	refuse(write, (Refused) {
		.message = REFUSED_UNGRANTED,.token = token,
		.detail = owner != NULL ?
			psprintf("There is no token for owner \"%s\".", lockfence_visible(owner)) :
			psprintf("There is no lease to renew with token %s.", lockfence_token_text(token))
	});
}

/* LF002: the write presents no token; is_any: any other would need one too. */
void
lockfence_refuse_missing(const FencedWrite *write, bool is_any, const char *hint)
{
	refuse(write, (Refused) {
		.message = REFUSED_MISSING,
		.detail = write->is_ddl ?
			"DDL in this database is fenced: every command must present the token of its lock." :
			psprintf("Table \"%s\" is fenced: %s must present the token of its lock.",
					 table_name(write), is_any ? "every write" : "this write"),
		.hint = hint
	});
}

/* LF003: not a token at all. */
void
lockfence_refuse_invalid(const FencedWrite *write, bool isnull, FenceToken token)
{
	refuse(write, (Refused) {
		.message = isnull ? REFUSED_NULL_TOKEN : REFUSED_NO_TOKEN,.token = token,
		.subject = psprintf(INT64_FORMAT, token),
		.detail = write->rel || write->resource ?
			psprintf("It was presented for resource \"%s\"; a token is always greater than zero.",
					 name_in_message(write)) :
			"A token is always greater than zero."
	});
}

/* LF003: what the client gave as its session's grant. */
void
lockfence_refuse_unreadable_grant(const FencedWrite *write, const char *problem)
{
	refuse(write, (Refused) {
		.message = REFUSED_UNREADABLE_GRANT,
		.subject = "lockfence.session_grant",
		.detail = problem
	});
}

/* LF003: the epoch has no token above the last one. */
void
lockfence_refuse_exhausted(const FencedWrite *write, FenceToken last)
{
	refuse(write, (Refused) {
		.message = REFUSED_EXHAUSTED,.mark = last,
		.detail = psprintf("The next token would have to be above %s, which is the last one that the epoch allows.",
						   lockfence_token_text(last))
	});
}

/* LF004: of an epoch that this database has not been told of. */
void
lockfence_refuse_unknown_epoch(const FencedWrite *write, FenceToken token, int epoch)
{
	refuse(write, (Refused) {
		.message = REFUSED_UNKNOWN_EPOCH,.token = token,
		.detail = psprintf("Presented token %s is of an epoch after the current epoch %d.",
						   lockfence_token_text(token), epoch),
		.hint = psprintf("If the lock service has raised its epoch, have an administrator call lockfence.set_epoch(%d, reason). If it has no epochs, its number is too large for a token: from 2^48 on, the upper bits are read as an epoch.",
						 lockfence_token_epoch(token))
	});
}

/* LF005: the database's history went back, and marks with it. */
void
lockfence_refuse_sealed(const FencedWrite *write, const char *detail)
{
	refuse(write, (Refused) {
		.message = REFUSED_SEALED,
		.detail = psprintf("%s Marks that were accepted after that may be lost, and tokens that were stale could be accepted again.",
						   detail)
	});
}

/* LF005: the table came without what lockfence knew of it. */
void
lockfence_refuse_unrecorded(const FencedWrite *write, Oid target, bool has_tokens)
{
	char	   *table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(target)),
												   get_rel_name(target));

	refuse(write, (Refused) {
		.message = REFUSED_UNRECORDED,
		.subject = table_name(write),
		.detail = "The table came without its record, as from a partial restore or by ATTACH PARTITION, and may lack the marks that keep stale holders out.",
		.hint = psprintf("Restore the marks, if there were any; then have an administrator call lockfence.reconcile(%s), which %sputs the table on record.",
						 lockfence_visible(quote_literal_cstr(table)),
						 has_tokens ? "raises them to the tokens in the rows and " : "")
	});
}

/* LF005: the fence of DDL came without what it is for. */
void
lockfence_refuse_unrecorded_ddl(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FENCE_SEALED),
			 errmsg(messages[REFUSED_UNRECORDED_DDL].text, ""),
			 errdetail("The event trigger came without its record, as from a dump of the definitions alone."),
			 errhint("%s", messages[REFUSED_UNRECORDED_DDL].hint)));
}

/* LF006: one write, two tokens, and no way to tell which holder it is. */
void
lockfence_refuse_conflicting(const FencedWrite *write,
							 FenceToken token, const char *token_source,
							 FenceToken other, const char *other_source)
{
	refuse(write, (Refused) {
		.message = REFUSED_CONFLICTING,.token = token,.mark = other,
		.hint = lockfence_session_has_grant() ?
			"Use one grant per transaction and present its token everywhere. The session presents the tokens of lockfence.session_grant in every transaction." : NULL,
		.detail = psprintf("%s is %s, %s is %s.",
						   token_source, lockfence_token_text(token),
						   other_source, lockfence_token_text(other))
	});
}

/* LF007: the fence's validator said no. */
void
lockfence_refuse_unvalidated(const FencedWrite *write, FenceToken token,
							 Oid validator)
{
	refuse(write, (Refused) {
		.message = REFUSED_UNVALIDATED,.token = token,
		.detail = psprintf("Function \"%s\" did not confirm token %s.",
						   lockfence_visible(get_func_name(validator)), lockfence_token_text(token))
	});
}

/* LF007: a token that would raise the mark in a row, and that no validator has confirmed. */
void
lockfence_refuse_unvouched(const FencedWrite *write, FenceToken token)
{
	refuse(write, (Refused) {
		.message = REFUSED_UNVOUCHED,.token = token,
		.detail = psprintf("Token %s would raise the mark in the row, and this transaction has presented it for no named resource.",
						   lockfence_token_text(token))
	});
}

/* LF008: the validator could not find out, as its error says. */
void
lockfence_refuse_unavailable(const FencedWrite *write, FenceToken token,
							 const ErrorData *error)
{
	refuse(write, (Refused) {
		.message = REFUSED_UNAVAILABLE,.token = token,
		.subject = error->message,.detail = error->detail,.hint = error->hint
	});
}

/* LF009: TRUNCATE would bypass every row trigger. */
void
lockfence_refuse_truncate(const FencedWrite *write)
{
	refuse(write, (Refused) {
		.message = REFUSED_TRUNCATE,
		.subject = table_name(write),
		.detail = "TRUNCATE fires no row trigger, so no row's token would be checked."
	});
}

/* LF010: no fence was asked about a token, and the transaction commits; a warning to the client, if it is only reported. */
void
lockfence_refuse_unchecked(FenceToken token, bool only_report)
{
	/* the name of no resource, since the token was given for none */
	FencedWrite commit = {.resource = "",.advisory = only_report};

	refuse(&commit, (Refused) {
		.message = REFUSED_UNCHECKED,.token = token,
		.subject = lockfence_token_text(token),
		.detail = "The transaction has written, but no fence was asked about this token: its statements on fenced tables may have found no row.",
		.report_level = WARNING
	});
}

/* LF011: a token that counts no more, by this server's clock. */
void
lockfence_refuse_expired(const FencedWrite *write, FenceToken token, TimestampTz valid_until)
{
	refuse(write, (Refused) {
		.message = REFUSED_EXPIRED,.token = token,
		.detail = psprintf("Presented token %s was valid until %s.",
						   lockfence_token_text(token), timestamptz_to_str(valid_until))
	});
}

/* LF011: the same of a token under which the transaction has written, when it commits. */
void
lockfence_refuse_expired_at_commit(const FencedWrite *write, FenceToken token,
								   TimestampTz valid_until, bool tells_name)
{
	refuse(write, (Refused) {
		.message = tells_name ? REFUSED_EXPIRED : REFUSED_EXPIRED_ROWS,.token = token,
		.detail = psprintf("The transaction has written under token %s, which was valid until %s, before the commit.",
						   lockfence_token_text(token), timestamptz_to_str(valid_until))
	});
}
