/*
 * readable.c
 *		Resource names that rows give, as far as the caller may read those rows.
 *
 * Such a name holds values of the row, and whoever may write to a row need not be
 * allowed to read it.  So, as in PostgreSQL's own messages, it is shown where the
 * caller has SELECT on the columns that it is made of, with no row security
 * in between: of the table itself, or of one that it is a partition of.  Elsewhere
 * the fence's template stands in its place.  The log line of a refusal and the view
 * of them have the name in full, and so has a name that the caller gave.
 */
#include "postgres.h"

#include "catalog/partition.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"

#include "check.h"
#include "fencedef.h"
#include "readable.h"
#include "visible.h"

/* May the caller read a column, which a partition may number otherwise? */
static bool
may_read_column(Oid relid, const char *column)
{
	AttrNumber	attno = get_attnum(relid, column);

	return attno > 0 &&
		pg_attribute_aclcheck(relid, attno, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

/* May the caller read, by that table, what names a resource of the fenced one? */
static bool
may_read_by(Oid relid, Relation rel, const Fence *fence)
{
	if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		return false;
	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK)
		return true;
	for (int i = 0; fence != NULL && i < fence->nparts; i++)
	{
		AttrNumber	attno = fence->parts[i].attno;

		if (attno != 0 &&
			!may_read_column(relid, NameStr(TupleDescAttr(RelationGetDescr(rel), attno - 1)->attname)))
			return false;
	}
	return fence != NULL;
}

/* May the caller read what names a resource of the table?  All of it, where the fence is not known (NULL). */
bool
lockfence_may_read(Relation rel, const Fence *fence)
{
	ListCell   *cell;

	if ((fence != NULL && fence->constant) || may_read_by(RelationGetRelid(rel), rel, fence))
		return true;
	if (rel->rd_rel->relispartition)
	{
		foreach(cell, get_partition_ancestors(RelationGetRelid(rel)))
		{
			if (may_read_by(lfirst_oid(cell), rel, fence))
				return true;
		}
	}
	return false;
}

/* The name of the write's resource, as a message to the caller may carry it. */
const char *
lockfence_readable_resource(const FencedWrite *write)
{
	if (write->named_by != NULL && !lockfence_may_read(write->rel, write->named_by))
		return lockfence_visible(write->named_by->resource);
	return lockfence_visible(write->resource);
}
