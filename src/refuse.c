/*
 * refuse.c
 *		One function a refusal: its SQLSTATE, detail and hint.
 *
 * On an advisory fence a refusal is a report in the server's log, and the
 * function returns; on any other it is an error, and does not.
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

#include "check.h"
#include "lockfence.h"
#include "readable.h"
#include "refusals.h"
#include "refuse.h"
#include "stats.h"
#include "token.h"
#include "visible.h"

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

/* Count and keep a refusal.  An argument that is no token is of no resource. */
static void
record(const FencedWrite *write, LockfenceCounter counter, int sqlstate,
	   FenceToken token, FenceToken mark)
{
	Refusal		refusal = {
		.counter = counter,
		.sqlstate = sqlstate,
		.resource = resource_name(write),
		.token = token,
		.mark = mark
	};

	if (refusal.resource != NULL)
		lockfence_record_refusal(write, &refusal);
}

/* The resource, as a message may carry it. */
static const char *
shown_name(const FencedWrite *write)
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

/* How severe a refusal is to this write. */
static int
refusal_level(const FencedWrite *write)
{
	return write->advisory ? LOG : ERROR;
}

/* The table and schema fields, for a write to a table. */
static int
report_table(const FencedWrite *write)
{
	return write->rel ? errtable(write->rel) : 0;
}

/* Mark a report of an advisory fence as one, for whoever reads the log. */
static int
report_advisory(const FencedWrite *write)
{
	return write->advisory ?
		errcontext("advisory fence of table \"%s\": the write went on",
				   table_name(write)) : 0;
}

/* What to do where the mark in a row is wrong; it has no name to be set by. */
static const char *
row_mark_hint(const FencedWrite *write)
{
	return write->row == NULL ? "" :
		" If the mark of the row is wrong, an administrator can set it by lockfence.reset_mark(target, key, token, reason).";
}

/* LF001: lower than what has been accepted. */
void
lockfence_refuse_stale(const FencedWrite *write, FenceToken token,
					   FenceToken mark, const char *mark_name)
{
	record(write, LOCKFENCE_STALE, ERRCODE_STALE_FENCE_TOKEN, token, mark);
	ereport(refusal_level(write),
			(errcode(ERRCODE_STALE_FENCE_TOKEN),
			 errmsg("stale fencing token for resource \"%s\"", shown_name(write)),
			 errdetail("Presented token %s is lower than the %s %s.",
					   lockfence_token_text(token), mark_name,
					   lockfence_token_text(mark)),
			 errhint("The lock was granted to another holder since. Stop the work done under this grant; acquire the lock again and present its new token.%s",
					 row_mark_hint(write)),
			 report_table(write), report_advisory(write)));
}

/* LF001: a single-use fence met the token of an earlier transaction. */
void
lockfence_refuse_repeated(const FencedWrite *write, FenceToken token)
{
	record(write, LOCKFENCE_STALE, ERRCODE_STALE_FENCE_TOKEN, token, token);
	ereport(refusal_level(write),
			(errcode(ERRCODE_STALE_FENCE_TOKEN),
			 errmsg("fencing token for resource \"%s\" was already used",
					shown_name(write)),
			 errdetail("Presented token %s equals the mark, and the fence accepts a token in one transaction only.",
					   lockfence_token_text(token)),
			 errhint("Acquire the lock again for every transaction that writes, and present its new token in that transaction.%s",
					 row_mark_hint(write)),
			 report_table(write), report_advisory(write)));
}

/* LF001: granted before the lock service raised its epoch. */
void
lockfence_refuse_old_epoch(const FencedWrite *write, FenceToken token, int epoch)
{
	record(write, LOCKFENCE_STALE, ERRCODE_STALE_FENCE_TOKEN, token, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_STALE_FENCE_TOKEN),
			 errmsg("stale fencing token for resource \"%s\"", shown_name(write)),
			 errdetail("Presented token %s is of an epoch before the current epoch %d.",
					   lockfence_token_text(token), epoch),
			 errhint("The lock service was restored or rehomed since, and every earlier grant ended. Acquire the lock again and present its new token."),
			 report_table(write), report_advisory(write)));
}

/* LF002: the write shows no token. */
void
lockfence_refuse_missing(const FencedWrite *write, const char *hint)
{
	record(write, LOCKFENCE_MISSING, ERRCODE_MISSING_FENCE_TOKEN, 0, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_MISSING_FENCE_TOKEN),
			 errmsg("no fencing token was presented for resource \"%s\"",
					shown_name(write)),
			 errdetail("Table \"%s\" is fenced: every write must show the token of its lock.",
					   table_name(write)),
			 errhint("%s", hint),
			 report_table(write), report_advisory(write)));
}

/* LF003: not a token at all. */
void
lockfence_refuse_invalid(const FencedWrite *write, bool isnull, FenceToken token)
{
	record(write, LOCKFENCE_INVALID, ERRCODE_INVALID_FENCE_TOKEN, token, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_INVALID_FENCE_TOKEN),
			 isnull ? errmsg("a fencing token must not be null") :
			 errmsg("invalid fencing token " INT64_FORMAT, token),
			 write->rel || write->resource ?
			 errdetail("It was presented for resource \"%s\"; a token is always greater than zero.",
					   shown_name(write)) :
			 errdetail("A token is always greater than zero."),
			 errhint("Pass the token that the lock service issued with the grant, as a bigint or as text."),
			 report_table(write), report_advisory(write)));
}

/* LF003: the epoch has no token above the last one. */
void
lockfence_refuse_exhausted(const FencedWrite *write, FenceToken last)
{
	record(write, LOCKFENCE_INVALID, ERRCODE_INVALID_FENCE_TOKEN, 0, last);
	ereport(refusal_level(write),
			(errcode(ERRCODE_INVALID_FENCE_TOKEN),
			 errmsg("no fencing token is left to issue for resource \"%s\"",
					shown_name(write)),
			 errdetail("The next token would have to be above %s, which is the last one that the epoch allows.",
					   lockfence_token_text(last)),
			 errhint("If the mark is wrong, have an administrator call lockfence.reset_mark(resource, token, reason); else lockfence.set_epoch(epoch, reason) with a higher epoch.")));
}

/* LF004: of an epoch that nobody has announced here. */
void
lockfence_refuse_unknown_epoch(const FencedWrite *write, FenceToken token, int epoch)
{
	record(write, LOCKFENCE_UNKNOWN_EPOCH, ERRCODE_UNKNOWN_FENCE_EPOCH, token, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_UNKNOWN_FENCE_EPOCH),
			 errmsg("fencing token for resource \"%s\" is of an unknown epoch",
					shown_name(write)),
			 errdetail("Presented token %s is of an epoch after the current epoch %d.",
					   lockfence_token_text(token), epoch),
			 errhint("If the lock service has raised its epoch, have an administrator call lockfence.set_epoch(%d, reason).",
					 lockfence_token_epoch(token)),
			 report_table(write), report_advisory(write)));
}

/* LF005: the database's history went back, and marks with it. */
void
lockfence_refuse_sealed(const FencedWrite *write, const char *detail)
{
	record(write, LOCKFENCE_SEALED, ERRCODE_FENCE_SEALED, 0, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_FENCE_SEALED),
			 errmsg("the fence is sealed: no write for resource \"%s\" is accepted",
					shown_name(write)),
			 errdetail("%s Marks that were accepted after that may be gone, and with them what keeps outdated holders out.",
					   detail),
			 errhint("Have an administrator call lockfence.reopen(floor, reason), with a token above every one that was issued so far."),
			 report_table(write), report_advisory(write)));
}

/* LF005: the table came without what lockfence knew of it. */
void
lockfence_refuse_unrecorded(const FencedWrite *write, Oid target, bool has_tokens)
{
	char	   *table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(target)),
												   get_rel_name(target));
	const char *call = psprintf("lockfence.reconcile(%s)", lockfence_visible(quote_literal_cstr(table)));

	record(write, LOCKFENCE_SEALED, ERRCODE_FENCE_SEALED, 0, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_FENCE_SEALED),
			 errmsg("the fence of table \"%s\" is sealed: the table is not on record",
					table_name(write)),
			 errdetail("The table came without its record, as from a partial restore or by ATTACH PARTITION, and may lack the marks that keep outdated holders out."),
			 has_tokens ?
			 errhint("Restore the marks, if there were any; then have an administrator call %s, which raises them to the tokens in the rows and puts the table on record.", call) :
			 errhint("Restore the marks, if there were any; then have an administrator call %s, which puts the table on record.", call),
			 report_table(write), report_advisory(write)));
}

/* LF006: one write, two tokens, and no way to tell which holder it is. */
void
lockfence_refuse_conflicting(const FencedWrite *write,
							 FenceToken token, const char *token_source,
							 FenceToken other, const char *other_source)
{
	record(write, LOCKFENCE_CONFLICTING, ERRCODE_CONFLICTING_FENCE_TOKENS, token, other);
	ereport(refusal_level(write),
			(errcode(ERRCODE_CONFLICTING_FENCE_TOKENS),
			 errmsg("conflicting fencing tokens for resource \"%s\"",
					shown_name(write)),
			 errdetail("%s is %s, %s is %s.",
					   token_source, lockfence_token_text(token),
					   other_source, lockfence_token_text(other)),
			 errhint("Write under one grant a transaction: show the same token everywhere."),
			 report_table(write), report_advisory(write)));
}

/* LF007: the fence's validator said no. */
void
lockfence_refuse_unvalidated(const FencedWrite *write, FenceToken token,
							 Oid validator)
{
	record(write, LOCKFENCE_UNVALIDATED, ERRCODE_FENCE_TOKEN_REFUSED, token, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_FENCE_TOKEN_REFUSED),
			 errmsg("fencing token for resource \"%s\" was refused by its validator",
					shown_name(write)),
			 errdetail("Function \"%s\" did not confirm token %s.",
					   lockfence_visible(get_func_name(validator)), lockfence_token_text(token)),
			 errhint("The lock service does not know this grant as current. Acquire the lock again and present its new token."),
			 report_table(write), report_advisory(write)));
}

/* LF007: nobody was asked about a token that would raise the mark in a row. */
void
lockfence_refuse_unvouched(const FencedWrite *write, FenceToken token)
{
	record(write, LOCKFENCE_UNVALIDATED, ERRCODE_FENCE_TOKEN_REFUSED, token, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_FENCE_TOKEN_REFUSED),
			 errmsg("fencing token for resource \"%s\" has not been validated",
					shown_name(write)),
			 errdetail("Token %s would raise the mark in the row, and this transaction has presented it for no named resource.",
					   lockfence_token_text(token)),
			 errhint("Call lockfence.present(resource, token) with the name of the lock first in this transaction: it asks lockfence.validator."),
			 report_table(write), report_advisory(write)));
}

/* LF008: the validator could not ask whoever knows, as its error says. */
void
lockfence_refuse_unavailable(const FencedWrite *write, FenceToken token,
							 const ErrorData *error)
{
	record(write, LOCKFENCE_UNAVAILABLE, ERRCODE_FENCE_VALIDATOR_UNAVAILABLE, token, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
			 errmsg_internal("%s", error->message),
			 error->detail ? errdetail_internal("%s", error->detail) : 0,
			 error->hint ? errhint("%s", error->hint) : 0,
			 report_table(write), report_advisory(write)));
}

/* LF009: TRUNCATE would pass every row trigger by. */
void
lockfence_refuse_truncate(const FencedWrite *write)
{
	record(write, LOCKFENCE_UNFENCEABLE, ERRCODE_UNFENCEABLE_OPERATION, 0, 0);
	ereport(refusal_level(write),
			(errcode(ERRCODE_UNFENCEABLE_OPERATION),
			 errmsg("cannot truncate fenced table \"%s\"",
					table_name(write)),
			 errdetail("TRUNCATE fires no row trigger, so no row's token would be checked."),
			 errhint("Use DELETE and present the tokens, or have an administrator set lockfence.bypass for the statement."),
			 report_table(write), report_advisory(write)));
}
