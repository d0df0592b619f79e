/*
 * inject.c
 *		Has the n-th call that lockfence makes into the server go wrong.
 *
 * Linked into a lockfence.so of this suite's own: the linker leads lockfence's
 * calls of the functions below here (--wrap), and the sources know nothing of it.
 * What can be seen between two calls is so seen before the second.
 *
 * inject(mode, n) arms the n-th call from now on, of whatever function:
 * "error" has it raise an error, "pause" wait for advisory lock 1 first, and
 * "flush" have every cache of the session invalidated first, where the function
 * is one that may do so.  calls() tells how many there were since, less than n
 * if nothing has happened, and disarms.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(lockfence_inject);
PG_FUNCTION_INFO_V1(lockfence_inject_calls);

static char mode = 'n';			/* of "none", "error", "pause", "flush" */
static int64 armed = 0;			/* the call that goes wrong; 0: none */
static int64 calls = 0;

/* inject(mode text, n bigint) */
Datum
lockfence_inject(PG_FUNCTION_ARGS)
{
	mode = text_to_cstring(PG_GETARG_TEXT_PP(0))[0];
	armed = PG_GETARG_INT64(1);
	calls = 0;
	PG_RETURN_VOID();
}

/* calls() */
Datum
lockfence_inject_calls(PG_FUNCTION_ARGS)
{
	armed = 0;
	PG_RETURN_INT64(calls);
}

static void
come(const char *function, bool may_invalidate)
{
	if (armed == 0 || (mode == 'f' && !may_invalidate) || ++calls != armed)
		return;
	armed = 0;
	if (mode == 'e')
		ereport(ERROR,
				(errcode(MAKE_SQLSTATE('X', 'X', '9', '9', '9')),
				 errmsg("call " INT64_FORMAT " goes wrong: %s", calls, function)));
	else if (mode == 'p')
		DirectFunctionCall1(pg_advisory_lock_int8, Int64GetDatum(1));
	else
		InvalidateSystemCaches();
}

#define WRAP(type, function, parameters, arguments, may_invalidate) \
	extern type __real_##function parameters; \
	extern type __wrap_##function parameters; \
	type __wrap_##function parameters \
	{ \
		come(#function, may_invalidate); \
		return __real_##function arguments; \
	}

#define WRAP_VOID(function, parameters, arguments, may_invalidate) \
	extern void __real_##function parameters; \
	extern void __wrap_##function parameters; \
	void __wrap_##function parameters \
	{ \
		come(#function, may_invalidate); \
		__real_##function arguments; \
	}

/* the catalogs */
WRAP(Relation, table_open, (Oid a, LOCKMODE b), (a, b), true)
WRAP(Relation, try_table_open, (Oid a, LOCKMODE b), (a, b), true)
WRAP(Relation, try_relation_open, (Oid a, LOCKMODE b), (a, b), true)
WRAP(Relation, index_open, (Oid a, LOCKMODE b), (a, b), true)
WRAP(HeapTuple, SearchSysCache1, (int a, Datum b), (a, b), true)
WRAP(bool, SearchSysCacheExists, (int a, Datum b, Datum c, Datum d, Datum e), (a, b, c, d, e), true)
WRAP(Oid, get_namespace_oid, (const char *a, bool b), (a, b), true)
WRAP(Oid, get_relname_relid, (const char *a, Oid b), (a, b), true)
WRAP(AttrNumber, get_attnum, (Oid a, const char *b), (a, b), true)
WRAP(char *, get_namespace_name, (Oid a), (a), true)
WRAP(Oid, getBaseType, (Oid a), (a), true)
WRAP_VOID(getTypeOutputInfo, (Oid a, Oid *b, bool *c), (a, b, c), true)
WRAP_VOID(getTypeInputInfo, (Oid a, Oid *b, Oid *c), (a, b, c), true)
WRAP_VOID(fmgr_info, (Oid a, FmgrInfo *b), (a, b), true)
WRAP_VOID(fmgr_info_cxt, (Oid a, FmgrInfo *b, MemoryContext c), (a, b, c), true)
WRAP(SysScanDesc, systable_beginscan, (Relation a, Oid b, bool c, Snapshot d, int e, ScanKey f), (a, b, c, d, e, f), true)
WRAP(HeapTuple, systable_getnext, (SysScanDesc a), (a), false)
WRAP_VOID(systable_endscan, (SysScanDesc a), (a), false)
WRAP_VOID(AcceptInvalidationMessages, (void), (), true)

/* the tables of marks and of what holds for all */
WRAP(Snapshot, GetLatestSnapshot, (void), (), false)
WRAP(Snapshot, RegisterSnapshot, (Snapshot a), (a), false)
WRAP_VOID(index_rescan, (IndexScanDesc a, ScanKey b, int c, ScanKey d, int e), (a, b, c, d, e), false)
WRAP(ItemPointer, index_getnext_tid, (IndexScanDesc a, ScanDirection b), (a, b), false)
WRAP(Buffer, ReadBuffer, (Relation a, BlockNumber b), (a, b), false)
WRAP(Buffer, ReleaseAndReadBuffer, (Buffer a, Relation b, BlockNumber c), (a, b, c), false)
WRAP_VOID(CatalogTupleInsert, (Relation a, HeapTuple b), (a, b), false)
WRAP_VOID(CommandCounterIncrement, (void), (), true)

/* locks, transactions, SQL */
WRAP(LockAcquireResult, LockAcquire, (const LOCKTAG *a, LOCKMODE b, bool c, bool d), (a, b, c, d), false)
WRAP_VOID(LockRelationOid, (Oid a, LOCKMODE b), (a, b), true)
WRAP(bool, ConditionalLockRelationOid, (Oid a, LOCKMODE b), (a, b), true)
WRAP_VOID(BeginInternalSubTransaction, (const char *a), (a), false)
WRAP(int, SPI_connect, (void), (), false)
WRAP(SPIPlanPtr, SPI_prepare, (const char *a, int b, Oid *c), (a, b, c), true)
WRAP(int, SPI_execute_plan, (SPIPlanPtr a, Datum *b, const char *c, bool d, long e), (a, b, c, d, e), true)

/* memory */
WRAP(void *, palloc, (Size a), (a), false)
WRAP(void *, palloc0, (Size a), (a), false)
WRAP(void *, repalloc, (void *a, Size b), (a, b), false)
WRAP(void *, MemoryContextAlloc, (MemoryContext a, Size b), (a, b), false)
WRAP(void *, MemoryContextAllocZero, (MemoryContext a, Size b), (a, b), false)
WRAP(char *, MemoryContextStrdup, (MemoryContext a, const char *b), (a, b), false)
WRAP(void *, hash_search, (HTAB *a, const void *b, HASHACTION c, bool *d), (a, b, c, d), false)
WRAP(HTAB *, hash_create, (const char *a, long b, const HASHCTL *c, int d), (a, b, c, d), false)
