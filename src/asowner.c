/*
 * asowner.c
 *		Writing to a table as its owner.
 *
 * Administrators write to tables of other owners by drill() and when they set marks
 * of rows, and so run what those owners defined: triggers, defaults, policies and
 * the like.  These run with the rights of the owner instead of the administrator's,
 * as in REINDEX: the user is changed in a way that they cannot undo, and settings
 * that they change are restored afterwards.  Deferred triggers cannot run so, since
 * they would run at the end of the transaction, when the user is the administrator
 * again; drill() makes them immediate.
 *
 * This gives no role a right: the caller must have the owner's rights already.
 * After an error the end of the subtransaction restores the user, as it does the
 * settings.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "args.h"
#include "asowner.h"
#include "rows.h"
#include "visible.h"

PG_FUNCTION_INFO_V1(lockfence_as_owner);
PG_FUNCTION_INFO_V1(lockfence_guarded_as_owner);

/* The owner of a table, if the caller has the owner's rights. */
static Oid
require_owner(Oid relid)
{
	Relation	rel = lockfence_open_table(relid, AccessShareLock);
	Oid			owner = rel->rd_rel->relowner;

	if (!has_privs_of_role(GetUserId(), owner))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE,
					   lockfence_visible(RelationGetRelationName(rel)));
	if (rel->rd_rel->relkind != RELKIND_RELATION &&
		rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table",
						lockfence_visible(RelationGetRelationName(rel)))));
	table_close(rel, NoLock);
	return owner;
}

/* Become the owner, under a search path. */
FormerSelf
lockfence_become(Oid owner, const char *path)
{
	FormerSelf	self;

	GetUserIdAndSecContext(&self.user, &self.context);
	self.level = NewGUCNestLevel();
	SetUserIdAndSecContext(owner, self.context | SECURITY_RESTRICTED_OPERATION);
	(void) set_config_option("search_path", path, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	return self;
}

void
lockfence_come_back(FormerSelf self)
{
	AtEOXact_GUC(false, self.level);
	SetUserIdAndSecContext(self.user, self.context);
}

/* The first row of the last result, as texts; NULL if there is none. */
static ArrayType *
first_row(void)
{
	TupleDesc	tupdesc = SPI_tuptable ? SPI_tuptable->tupdesc : NULL;
	Datum	   *texts;
	bool	   *nulls;
	int			dimension;
	int			first = 1;

	if (tupdesc == NULL || SPI_tuptable->numvals == 0)
		return NULL;
	dimension = tupdesc->natts;
	texts = palloc0(dimension * sizeof(Datum));
	nulls = palloc(dimension * sizeof(bool));
	for (int i = 0; i < dimension; i++)
	{
		char	   *text = SPI_getvalue(SPI_tuptable->vals[0], tupdesc, i + 1);

		nulls[i] = text == NULL;
		texts[i] = text ? CStringGetTextDatum(text) : (Datum) 0;
	}
	return construct_md_array(texts, nulls, 1, &dimension, &first,
							  TEXTOID, -1, false, TYPALIGN_INT);
}

/*
 * _as_owner(target regclass, statement text, path text): executes a statement as the
 * table's owner, under a search path; returns the number of rows, and the first row
 * as texts.
 */
Datum
lockfence_as_owner(PG_FUNCTION_ARGS)
{
	Oid			owner = require_owner(PG_GETARG_OID(0));
	char	   *statement = text_to_cstring(PG_GETARG_TEXT_PP(1));
	FormerSelf	self = lockfence_become(owner, text_to_cstring(PG_GETARG_TEXT_PP(2)));
	ArrayType  *row;
	Datum		values[2];
	bool		nulls[2] = {false};
	int			result;

	SPI_connect();
	result = SPI_execute(statement, false, 0);
	if (result < 0)
		elog(ERROR, "\"%s\" failed: %s", statement, SPI_result_code_string(result));
	values[0] = Int64GetDatum((int64) SPI_processed);
	row = first_row();
	nulls[1] = row == NULL;
	values[1] = row ? SPI_datumTransfer(PointerGetDatum(row), false, -1) : (Datum) 0;
	SPI_finish();
	lockfence_come_back(self);
	PG_RETURN_DATUM(lockfence_return_row(fcinfo, values, nulls));
}

/* One of the guarded functions, which the caller must be allowed to call. */
static Oid
require_guarded(const char *signature)
{
	if (!DatumGetBool(DirectFunctionCall2(has_function_privilege_name,
										  CStringGetTextDatum(signature),
										  CStringGetTextDatum("EXECUTE"))))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s", signature)));
	return DatumGetObjectId(DirectFunctionCall1(regprocedurein, CStringGetDatum(signature)));
}

/*
 * _guarded_as_owner(target regclass, key jsonb, changes jsonb, token fence_token, path text):
 * guarded_update() as the table's owner, who needs no privilege to call it; without
 * changes, guarded_delete().
 */
Datum
lockfence_guarded_as_owner(PG_FUNCTION_ARGS)
{
	Oid			owner = require_owner(PG_GETARG_OID(0));
	Oid			function = require_guarded(PG_ARGISNULL(2) ?
										   "lockfence.guarded_delete(pg_catalog.regclass, pg_catalog.jsonb, lockfence.fence_token)" :
										   "lockfence.guarded_update(pg_catalog.regclass, pg_catalog.jsonb, pg_catalog.jsonb, lockfence.fence_token)");
	FormerSelf	self = lockfence_become(owner, text_to_cstring(PG_GETARG_TEXT_PP(4)));
	Datum		written = PG_ARGISNULL(2) ?
		OidFunctionCall3(function, PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), PG_GETARG_DATUM(3)) :
		OidFunctionCall4(function, PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2), PG_GETARG_DATUM(3));

	lockfence_come_back(self);
	PG_RETURN_DATUM(written);
}
