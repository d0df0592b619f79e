/*
 * readable.c
 *		Resource names made of rows, for callers that may read those rows.
 *
 * Such a name contains values of the row, and a role that may write to a row need
 * not be allowed to read it.  So, as in PostgreSQL's own messages, the name is told
 * only if the caller has SELECT on the columns that it is made of, and no row
 * security applies: on the table itself, or on one of which it is a partition.
 * Otherwise the fence's template replaces it.  The log line of a refusal and the
 * view of refusals have the full name, and so has a name that the caller gave.
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

/* May the caller read a column of that name, whatever its number in a partition? */
static bool
may_read_column(Oid relid, const char *column)
{
	AttrNumber	attno = get_attnum(relid, column);

	return attno > 0 &&
		pg_attribute_aclcheck(relid, attno, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

/* May the caller read, by that table, the columns that name the resource? */
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

/* May the caller read the columns that name a resource of the table?  All columns, if the fence is not known (NULL). */
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

/* The name of the write's resource, as a message to the caller can carry it. */
const char *
lockfence_readable_resource(const FencedWrite *write)
{
	if (write->named_by != NULL && !lockfence_may_read(write->rel, write->named_by))
		return lockfence_visible(write->named_by->resource);
	return lockfence_visible(write->resource);
}
