/*
 * unwritten.c
 *		The row that a guarded function's statement did not find.
 *
 * The statement looks for a key and for other conditions.  If it finds nothing, the row
 * that has the key may be in another state because its holder is another one by now.
 * So that row is locked, and decides on the token, as its guard would; an advisory
 * fence reads it without a lock, since it must not wait.  A caller who
 * does not see the row, by privilege or row security, is told nothing.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"

#include "advisory.h"
#include "check.h"
#include "fence.h"
#include "fencecache.h"
#include "fencedef.h"
#include "keyrow.h"
#include "lockfence.h"
#include "presented.h"
#include "rowtokens.h"
#include "template.h"
#include "unwritten.h"

/* Does the caller see the row that has the unique key, as the statement would? */
static bool
sees_row(const UnwrittenCall *call, const GivenColumn *unique, int nunique)
{
	uint64		rows;

	SPI_connect();
	lockfence_query_key(call->rel, "", unique, nunique, call->mode == ACL_UPDATE && !lockfence_is_advisory(call->fence));
	rows = SPI_processed;
	SPI_finish();
	return rows > 0;
}

/*
 * May the caller be told of the mark of a row that the statement did not find?  A
 * lock that is taken for an UPDATE asks the policies of an UPDATE.  No lock asks
 * those of a DELETE, so the caller must be allowed to read the token anyway.
 */
static bool
may_be_told(const UnwrittenCall *call, const GivenColumn *unique, int nunique)
{
	Oid			relid = RelationGetRelid(call->rel);
	AttrNumber	attno = call->fence->token_attno;

	if (check_enable_rls(relid, InvalidOid, true) != RLS_ENABLED)
		return true;
	if (call->mode == ACL_DELETE &&
		pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		(attno == 0 || pg_attribute_aclcheck(relid, attno, GetUserId(), ACL_SELECT) != ACLCHECK_OK))
		return false;
	return sees_row(call, unique, nunique);
}

/* Let a row that was not written decide on the token. */
static void
admit_row(const UnwrittenCall *call, Relation holder, TupleTableSlot *row)
{
	const Fence *fence = lockfence_relation_fence(holder);
	const char *resource = fence && fence->resource ? lockfence_find_resource(fence, row) : NULL;
	PresentedTokens tokens = lockfence_given_token(resource, call->token);
	FenceCheck	check;
	FenceToken	previous;

	if (fence == NULL || (fence->resource != NULL && resource == NULL))
		return;
	check = lockfence_fence_check(fence, holder, resource);
	if (resource != NULL)
		check.write.named_by = fence;
	else
		check.write.row = row;
	check.stored = lockfence_stored_token(fence, row);
	check.only_compares = true;
	check.own_row = TransactionIdIsCurrentTransactionId(lockfence_row_writer(row));
	(void) lockfence_admit(&check, &tokens, &previous);
}

/*
 * The statement has found no row.  If the key has a unique key, and so names one row,
 * let that row decide.
 */
void
lockfence_admit_unwritten(void *arg)
{
	const UnwrittenCall *call = (const UnwrittenCall *) arg;
	int			nunique;
	GivenColumn *unique = lockfence_unique_key(call->rel, call->keys, call->nkeys, &nunique);
	FormerSelf	self;
	List	   *rows;
	ListCell   *cell;

	if (unique == NULL || !may_be_told(call, unique, nunique))
		return;
	self = lockfence_become_owner(call->rel, false);
	rows = lockfence_rows_with_key(call->rel, unique, nunique, !lockfence_is_advisory(call->fence));
	lockfence_come_back(self);
	foreach(cell, rows)
	{
		const KeyRow *found = (KeyRow *) lfirst(cell);
		TupleTableSlot *row;
		Relation	holder;

		if (get_rel_relkind(found->relid) != RELKIND_RELATION)
			continue;			/* a foreign table, which has no fence */
		row = lockfence_fetch_row(found, RowExclusiveLock, &holder);
		admit_row(call, holder, row);
		lockfence_drop_row(row, holder);
	}
}
