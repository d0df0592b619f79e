/*
 * module.c
 *		What the benchmark needs inside the server: a row trigger and a present()
 *		that do nothing, the floor of all that do something; and callgrind's
 *		switch.
 */
#include "postgres.h"

#include <valgrind/callgrind.h>

#include "commands/trigger.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(noop_row);
PG_FUNCTION_INFO_V1(noop_present);
PG_FUNCTION_INFO_V1(count_begin);
PG_FUNCTION_INFO_V1(count_end);

PGDLLEXPORT Datum
noop_row(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
						   trigger->tg_newtuple : trigger->tg_trigtuple);
}

/* noop_present(resource, token) */
PGDLLEXPORT Datum
noop_present(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PG_GETARG_DATUM(1));
}

/* Count this process's instructions from here on. */
PGDLLEXPORT Datum
count_begin(PG_FUNCTION_ARGS)
{
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	PG_RETURN_VOID();
}

/* Write what was counted to callgrind's next file, and count no more. */
PGDLLEXPORT Datum
count_end(PG_FUNCTION_ARGS)
{
	CALLGRIND_DUMP_STATS;
	CALLGRIND_STOP_INSTRUMENTATION;
	PG_RETURN_VOID();
}
