/*
 * relation.c
 *		The table of marks and its indexes: which relations they are, and whether
 *		they can be relied on.
 *
 * Only the primary key tells that a resource has no mark, so the fence does not
 * decide without it.  The hash index only makes reading faster: if it is missing,
 * or not as it should be, it is not used.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "intact.h"
#include "lockfence.h"
#include "relation.h"

static Oid	mark_relid = InvalidOid;	/* InvalidOid: look all of them up */
static Oid	mark_index = InvalidOid;
static Oid	mark_hash = InvalidOid; /* InvalidOid: there is none that can be used */
static bool mark_is_readable = false;	/* known to be, ... */
static bool mark_is_intact = false; /* ... and so can be written to */
static uint64 relcache_changes = 0;

/* A relcache entry has changed: if it was one of these, look them up again. */
void
lockfence_relation_at_relcache(Oid relid)
{
	relcache_changes++;
	if (!OidIsValid(relid) || relid == mark_relid || relid == mark_index ||
		relid == mark_hash)
	{
		mark_relid = mark_index = mark_hash = InvalidOid;
		mark_is_readable = mark_is_intact = false;
	}
}

/* A relation in the extension's schema, or InvalidOid. */
static Oid
own_relation(const char *name)
{
	Oid			schema = get_namespace_oid(LOCKFENCE_SCHEMA, true);

	return OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;
}

/* Does a relation of that name exist in the schema?  Other extensions of the project have some of them. */
bool
lockfence_relation_exists(const char *name)
{
	return OidIsValid(own_relation(name));
}

/* A relation of the extension, looked up in its schema only. */
Oid
lockfence_relation_oid(const char *name)
{
	Oid			relid = own_relation(name);

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s.%s\" does not exist", LOCKFENCE_SCHEMA, name),
				 errdetail("A fence cannot decide without it, and rejects all writes."),
				 errhint("Create the extension lockfence in this database, or restore what was dropped from it.")));
	return relid;
}

/* Does the relation have that access method? */
static bool
is_of_method(Oid relid, Oid method)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		is;

	if (!HeapTupleIsValid(tuple))
		return false;
	is = ((Form_pg_class) GETSTRUCT(tuple))->relam == method;
	ReleaseSysCache(tuple);
	return is;
}

/* Does the index have an entry for every mark of the table, by its resource? */
static bool
index_is_whole(Oid index, Oid relid, bool unique)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Form_pg_index form;
	bool		whole;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	whole = form->indrelid == relid && form->indisunique == unique &&
		form->indisvalid && form->indisready && form->indislive &&
		form->indnkeyatts == 1 && form->indkey.values[0] == LOCKFENCE_MARK_RESOURCE &&
		heap_attisnull(tuple, Anum_pg_index_indpred, NULL) && lockfence_index_is_sorted(tuple);
	ReleaseSysCache(tuple);
	return whole;
}

/* The table's primary key, or an equivalent index; an error if there is none. */
static Oid
find_key(Oid relid)
{
	Oid			index = lockfence_relation_oid("mark_pkey");

	if (!index_is_whole(index, relid, true))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s.mark_pkey\" cannot be relied on", LOCKFENCE_SCHEMA),
				 errdetail("It is not valid, is not sorted by COLLATE \"C\", or does not have every resource of \"%s.mark\". A fence cannot decide without it, and rejects all writes.",
						   LOCKFENCE_SCHEMA),
				 errhint("Use REINDEX to make it valid, or restore the primary key on the column resource.")));
	return index;
}

/* The table's hash index; InvalidOid if it does not exist, or cannot be used. */
static Oid
find_hash(Oid relid)
{
	Oid			index = own_relation("mark_hash");

	return OidIsValid(index) && is_of_method(index, HASH_AM_OID) &&
		index_is_whole(index, relid, false) ? index : InvalidOid;
}

/* Look the table of marks and its indexes up, unless they are known. */
static void
find_mark_relation(void)
{
	while (!OidIsValid(mark_relid))
	{
		uint64		before = relcache_changes;
		Oid			relid = lockfence_relation_oid("mark");
		Oid			index = find_key(relid);
		Oid			hash = find_hash(relid);

		/* a change that came meanwhile may have been of one of them */
		if (relcache_changes == before)
		{
			mark_hash = hash;
			mark_index = index;
			mark_relid = relid;
		}
	}
}

/* The table of marks. */
Oid
lockfence_mark_relid(void)
{
	find_mark_relation();
	return mark_relid;
}

/*
 * Open a relation of the extension.  A session that waited for DROP EXTENSION finds
 * it gone, and gets the same error as if it had never existed.
 */
Relation
lockfence_open_relation(const char *name, LOCKMODE mode)
{
	Relation	rel;

	do
		rel = try_table_open(lockfence_relation_oid(name), mode);
	while (rel == NULL);
	return rel;
}

/* Check the open table, unless that was done since its last change. */
static void
look_over(Relation marks, bool *is_good, void (*require) (Relation rel))
{
	while (unlikely(!*is_good))
	{
		uint64		before = relcache_changes;

		require(marks);
		*is_good = relcache_changes == before;
	}
}

/* Open the table of marks; the lock is kept until the end of the transaction. */
Relation
lockfence_open_marks(void)
{
	Relation	marks;

	do
		marks = try_table_open(lockfence_mark_relid(), AccessShareLock);
	while (marks == NULL);
	look_over(marks, &mark_is_readable, lockfence_require_readable);
	return marks;
}

/* Raise an error unless the fence can write to the table of marks, which is locked for that. */
void
lockfence_require_intact_marks(Relation marks)
{
	look_over(marks, &mark_is_intact, lockfence_require_intact);
}

/*
 * The indexes of the table of marks, which must be open: until it was locked,
 * REINDEX CONCURRENTLY could replace them, and DROP INDEX could drop them.
 */
Oid
lockfence_mark_index(void)
{
	find_mark_relation();
	return mark_index;
}

Oid
lockfence_mark_hash(void)
{
	find_mark_relation();
	return mark_hash;
}
