/*
 * issuer.c
 *		The trigger on a lock table that issues a token for each grant.
 *
 * The lock table belongs to a library that knows nothing of tokens.  A grant is
 * an INSERT, or an UPDATE that sets certain columns, to a row that meets the
 * trigger's condition.  issue_from() has put the condition into the trigger, so
 * PostgreSQL evaluates it before this function is called, with the rights of the
 * session that writes.  The trigger is an AFTER ROW trigger.  A BEFORE one would
 * fire for an INSERT ... ON CONFLICT that then writes nothing, and so shut out a
 * live holder.
 *
 * The token is issued in the transaction of the grant, so that both are committed
 * or neither is.  If a transaction of the previous holder still holds the resource,
 * the grant waits for it, but no longer than the trigger says.
 *
 * The session that writes to the lock table needs no privilege on lockfence: mark
 * and record are written directly.  So nothing runs here with the rights of another
 * role.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "args.h"
#include "asowner.h"
#include "compat.h"
#include "fencedef.h"
#include "lease.h"
#include "lockfence.h"
#include "relation.h"
#include "stats.h"
#include "template.h"
#include "visible.h"

PG_FUNCTION_INFO_V1(lockfence_issue_row);
PG_FUNCTION_INFO_V1(lockfence_record_issuer);

/* What issue_from() has written into the trigger. */
typedef struct Issuer
{
	const char *resource;		/* template */
	const char *owner;			/* template */
	int			wait;			/* milliseconds */
} Issuer;

/* The value of a trigger's argument `setting=value`; an error if there is none. */
static const char *
trigger_argument(const Trigger *trigger, const char *setting)
{
	size_t		length = strlen(setting);

	for (int i = 0; i < trigger->tgnargs; i++)
	{
		const char *argument = trigger->tgargs[i];

		if (strncmp(argument, setting, length) == 0 && argument[length] == '=')
			return pstrdup(argument + length + 1);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("trigger \"%s\" does not say which tokens it issues",
					lockfence_visible(trigger->tgname)),
			 errdetail("It has no argument \"%s\".", setting),
			 errhint("Declare it again by lockfence.stop_issuing() and lockfence.issue_from().")));
}

/* Take in the trigger's arguments. */
static Issuer
read_issuer(const Trigger *trigger)
{
	Issuer		issuer = {
		.resource = trigger_argument(trigger, "resource"),
		.owner = trigger_argument(trigger, "owner"),
		.wait = pg_strtoint32(trigger_argument(trigger, "wait"))
	};

	/* 0 would mean to wait for ever */
	issuer.wait = Max(issuer.wait, 1);
	return issuer;
}

/* Raise an error if the table lacks a column of the template. */
static void
require_columns(const Fence *template, Relation rel)
{
	for (int i = 0; i < template->nparts; i++)
	{
		const TemplatePart *part = &template->parts[i];

		if (part->attno != 0 && get_attnum(RelationGetRelid(rel), part->literal) <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" that names what lock table \"%s\" grants does not exist",
							lockfence_visible(part->literal),
							lockfence_visible(RelationGetRelationName(rel))),
					 errdetail("It was renamed or dropped after lockfence.issue_from(). The table grants no lock without issuing a token."),
					 errhint("Declare it again by lockfence.stop_issuing() and lockfence.issue_from()."),
					 errtable(rel)));
	}
}

/* A template, ready to be filled in from the table's rows. */
static Fence *
parse_template(Relation rel, const char *text)
{
	Fence	   *template = palloc0(sizeof(Fence));

	template->resource = pstrdup(text);
	template->unpadded = true;
	lockfence_split_template(template, text);
	require_columns(template, rel);
	lockfence_resolve_template(template, rel);
	return template;
}

/* Is one of the template's columns null? */
static bool
has_null(const Fence *template, TupleTableSlot *row)
{
	for (int i = 0; i < template->nparts; i++)
	{
		if (template->parts[i].attno != 0 && slot_attisnull(row, template->parts[i].attno))
			return true;
	}
	return false;
}

/* Set a setting until its level ends. */
static void
set_setting(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Limit waits for locks to that many milliseconds, or fewer if the session's own
 * limit is lower, and report no names that no fence makes: the fence may come later.
 * Returns the level of settings to return to.
 */
static int
begin_settings(int wait)
{
	int			level = NewGUCNestLevel();
	char		limit[12];

	pg_ltoa(LockTimeout > 0 ? Min(LockTimeout, wait) : wait, limit);
	set_setting("lock_timeout", limit);
	set_setting("lockfence.unknown_resource", "ignore");
	return level;
}

/* Issue the next token of the resource; count a grant that fails because the previous holder is in the way. */
static FenceToken
issue_or_count(const char *resource)
{
	FenceToken	token;

	PG_TRY();
	{
		token = lockfence_issue_grant(resource, (IssueTerms) {0});
	}
	PG_CATCH();
	{
		if (geterrcode() == ERRCODE_LOCK_NOT_AVAILABLE)
			lockfence_count(NULL, LOCKFENCE_DECLINED);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return token;
}

/* Put the grant on record.  If owner is NULL, no session can ask for its token. */
static void
record_grant(const char *resource, const char *owner, FenceToken token)
{
	NullableDatum columns[LEASE_NATTS] = {
		{.value = Int64GetDatum(token)},
		{.value = TimestampTzGetDatum(GetCurrentTimestamp())},
		{.isnull = true},		/* the lock table decides */
		{.value = CStringGetTextDatum(resource)},
		{.isnull = owner == NULL}
	};

	if (owner != NULL)
		columns[LEASE_ATTNO_OWNER - 1].value = CStringGetTextDatum(owner);
	lockfence_write_lease(resource, columns);
}

/* Issue a token for the row that was granted, unless it names no resource. */
static void
issue_for_row(Relation rel, const Issuer *issuer, TupleTableSlot *row)
{
	const Fence *template = parse_template(rel, issuer->resource);
	const char *resource;
	const char *owner;
	int			level;

	if (has_null(template, row))
		return;
	resource = lockfence_slot_resource(template, rel, row);
	owner = lockfence_find_resource(parse_template(rel, issuer->owner), row);
	level = begin_settings(issuer->wait);
	record_grant(resource, owner, issue_or_count(resource));
	AtEOXact_GUC(true, level);
}

/* AFTER INSERT OR UPDATE FOR EACH ROW */
Datum
lockfence_issue_row(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Issuer		issuer;

	lockfence_require_trigger(fcinfo);
	if (!TRIGGER_FIRED_AFTER(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("a token is issued by a trigger AFTER INSERT OR UPDATE FOR EACH ROW"),
				 errhint("Have lockfence.issue_from() create the trigger.")));

	/* the publisher has issued the token of a replicated row */
	if (IsLogicalWorker())
		return PointerGetDatum(NULL);
	issuer = read_issuer(trigger->tg_trigger);
	issue_for_row(trigger->tg_relation, &issuer,
				  TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newslot : trigger->tg_trigslot);
	return PointerGetDatum(NULL);
}

/* An error unless the caller owns the table. */
static void
require_owned(Oid relid)
{
	Relation	rel = lockfence_open_table(relid, AccessShareLock);

	if (!lockfence_owns_relation(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE,
					   lockfence_visible(RelationGetRelationName(rel)));
	table_close(rel, NoLock);
}

/*
 * _record_issuer(target regclass): the owner of a table has it put on record how it
 * issues.  The record is written as its own owner; what it says of the tables of
 * others is theirs, or they would not learn that their triggers are gone.
 */
Datum
lockfence_record_issuer(PG_FUNCTION_ARGS)
{
	Relation	record;
	FormerSelf	self;

	require_owned(PG_GETARG_OID(0));
	record = lockfence_open_relation("issuer", RowExclusiveLock);
	self = lockfence_become(record->rd_rel->relowner, "pg_catalog, pg_temp");
	OidFunctionCall1(DatumGetObjectId(DirectFunctionCall1(regprocedurein,
														  CStringGetDatum("lockfence._write_issuer(pg_catalog.regclass)"))),
					 PG_GETARG_DATUM(0));
	lockfence_come_back(self);
	table_close(record, NoLock);
	PG_RETURN_VOID();
}
