/*
 * fuzz.c
 *		libFuzzer inside a backend.
 *
 * What parses the extension's inputs needs a server around it: its memory, its
 * errors, its types and catalogs.  So this is linked into the extension's own
 * library, instrumented, with libFuzzer, and
 *
 *		CALL fuzz.run('fuzz.some_target', '{-runs=10000,DIRECTORY}')
 *
 * feeds that SQL function (one argument, bytea) in a transaction of its own for
 * each input, which is rolled back.  An error is fine if it has an SQLSTATE that
 * a user could make something of.  One of class XX, which stands for "this cannot
 * happen", and FUZZ1, by which a target says that a property does not hold, end
 * the run like a crash, and so does memory that is not given back.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "nodes/parsenodes.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

/* Inputs until everything is warm, and between looks at the memory. */
#define MEMORY_INTERVAL 2000

/* By how much memory may grow afterwards: the plans that are kept take some. */
#define MEMORY_SLACK (8 * 1024 * 1024)

extern int	LLVMFuzzerRunDriver(int *argc, char ***argv,
								int (*callback) (const uint8_t *data, size_t size));

PG_FUNCTION_INFO_V1(lockfence_fuzz_run);

static SPIPlanPtr plan;
static MemoryContext input_context;
static uint64 runs = 0;
static Size memory_before = 0;

/* The end of the run: libFuzzer keeps the input, and tells. */
static void
give_up(const char *why, const ErrorData *error)
{
	fprintf(stderr, "fuzz: %s\n", why);
	if (error != NULL)
		fprintf(stderr, "fuzz: %s: %s\nfuzz: %s\n", unpack_sql_state(error->sqlerrcode),
				error->message, error->detail ? error->detail : "");
	abort();
}

static void
judge_error(const ErrorData *error)
{
	if (ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_INTERNAL_ERROR)
		give_up("an internal error", error);
	if (error->sqlerrcode == MAKE_SQLSTATE('F', 'U', 'Z', 'Z', '1'))
		give_up("a property does not hold", error);
}

/* Run the target on one input. */
static void
run_target(const uint8_t *data, size_t size)
{
	bytea	   *input = palloc(VARHDRSZ + size);
	Datum		values[] = {PointerGetDatum(input)};
	int			result;

	SET_VARSIZE(input, VARHDRSZ + size);
	memcpy(VARDATA(input), data, size);
	SPI_connect();
	result = SPI_execute_plan(plan, values, NULL, false, 0);
	if (result != SPI_OK_SELECT)
		elog(ERROR, "the target failed: %s", SPI_result_code_string(result));
	SPI_finish();
}

/*
 * What the backend has, but for two things that PostgreSQL never forgets: names
 * that were looked for in vain, and time zones.
 */
static Size
memory_in_use(void)
{
	Size		memory = MemoryContextMemAllocated(TopMemoryContext, true) -
		MemoryContextMemAllocated(CacheMemoryContext, false);

	for (MemoryContext child = TopMemoryContext->firstchild; child != NULL; child = child->nextchild)
		if (strcmp(child->name, "Timezones") == 0)
			memory -= MemoryContextMemAllocated(child, true);
	return memory;
}

static void
check_memory(void)
{
	Size		memory;

	if (++runs % MEMORY_INTERVAL != 0)
		return;
	memory = memory_in_use();
	if (memory_before == 0)
		memory_before = memory;
	else if (memory > memory_before + MEMORY_SLACK)
	{
		fprintf(stderr, "fuzz: %zu bytes, then %zu\n", memory_before, memory);
		MemoryContextStats(TopMemoryContext);
		give_up("memory is not given back", NULL);
	}
}

static int
one_input(const uint8_t *data, size_t size)
{
	ResourceOwner owner = CurrentResourceOwner;

	MemoryContextSwitchTo(input_context);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(input_context);
	PG_TRY();
	{
		run_target(data, size);
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(input_context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		judge_error(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(input_context);
	CurrentResourceOwner = owner;
	SPI_rollback();
	MemoryContextReset(input_context);
	check_memory();
	return 0;
}

/* fuzz.run(target regproc, arguments text[]): a procedure, for libFuzzer's arguments */
Datum
lockfence_fuzz_run(PG_FUNCTION_ARGS)
{
	CallContext *call = (CallContext *) fcinfo->context;
	char	   *target = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Datum	   *words;
	int			nwords;
	char	  **argv;
	Oid			types[] = {BYTEAOID};

	if (call == NULL || !IsA(call, CallContext) || call->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("call it outside of a transaction")));

	/* all of this has to outlive the transaction */
	MemoryContextSwitchTo(TopMemoryContext);
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, -1, false, TYPALIGN_INT, &words, NULL, &nwords);
	argv = palloc((nwords + 2) * sizeof(char *));
	argv[0] = "fuzz";
	for (int i = 0; i < nwords; i++)
		argv[i + 1] = TextDatumGetCString(words[i]);
	argv[++nwords] = NULL;
	input_context = AllocSetContextCreate(TopMemoryContext, "fuzz input", ALLOCSET_DEFAULT_SIZES);

	SPI_connect_ext(SPI_OPT_NONATOMIC);
	plan = SPI_prepare(psprintf("SELECT %s($1)", target), 1, types);
	SPI_keepplan(plan);
	if (LLVMFuzzerRunDriver(&nwords, &argv, one_input) != 0)
		elog(ERROR, "libFuzzer could not start");
	SPI_finish();
	PG_RETURN_VOID();
}
