/*
 * rowname.c
 *		The name of a row that is its own resource: its table and primary key, as
 *		PostgreSQL's messages have them.
 *
 * A message takes it from PostgreSQL (refuse.c), which leaves the key out if the caller
 * may not read that.  Here it is for those who administer the server.  It is made for
 * every row that is taken over, so it does not read the key from the definition of the
 * index, which would take six times as long.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "rowname.h"

/* A value as text. */
static const char *
value_text(TupleTableSlot *row, Form_pg_attribute column)
{
	bool		isnull;
	bool		is_varlena;
	Oid			output;
	Datum		value = slot_getattr(row, column->attnum, &isnull);

	if (isnull)
		return "null";
	getTypeOutputInfo(column->atttypid, &output, &is_varlena);
	return OidOutputFunctionCall(output, value);
}

/* Append the columns of the key and their values.  The row's own descriptor need not have their names. */
static void
append_key(StringInfo name, TupleDesc columns, TupleTableSlot *row, Form_pg_index key)
{
	for (int i = 0; i < key->indnkeyatts; i++)
	{
		appendStringInfoString(name, i > 0 ? ", " : " (");
		appendStringInfoString(name, quote_identifier(NameStr(TupleDescAttr(columns, key->indkey.values[i] - 1)->attname)));
	}
	for (int i = 0; i < key->indnkeyatts; i++)
	{
		appendStringInfoString(name, i > 0 ? ", " : ")=(");
		appendStringInfoString(name, value_text(row, TupleDescAttr(columns, key->indkey.values[i] - 1)));
	}
	appendStringInfoChar(name, ')');
}

/* The name of the row.  Without a primary key it has only that of its table. */
RowName
lockfence_name_row(Relation rel, TupleTableSlot *row)
{
	StringInfoData name;
	HeapTuple	key;
	RowName		result = {0};

	initStringInfo(&name);
	appendStringInfoString(&name, quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
															 RelationGetRelationName(rel)));
	list_free(RelationGetIndexList(rel));	/* fills in rd_pkindex */
	key = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(rel->rd_pkindex));
	if (HeapTupleIsValid(key))
	{
		append_key(&name, RelationGetDescr(rel), row, (Form_pg_index) GETSTRUCT(key));
		ReleaseSysCache(key);
		result.id = hash_bytes_extended((const unsigned char *) name.data, name.len,
										(uint64) RelationGetRelid(rel) << 32 | MyDatabaseId);
	}
	result.text = name.data;
	return result;
}
