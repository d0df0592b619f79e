/*
 * statsfuncs.c
 *		stats_info() and stats_reset(), for counters and refusals together.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "refusals.h"
#include "rows.h"
#include "stats.h"

PG_FUNCTION_INFO_V1(lockfence_stats_info);
PG_FUNCTION_INFO_V1(lockfence_stats_reset);

/* stats_info(): what is kept at all, how much of it, and since when */
Datum
lockfence_stats_info(PG_FUNCTION_ARGS)
{
	StatsTotals counters = lockfence_stats_totals();
	RefusalTotals refusals = lockfence_refusal_totals();
	Datum		values[] = {
		BoolGetDatum(counters.available),
		Int64GetDatum(counters.capacity),
		Int64GetDatum(counters.used),
		Int64GetDatum(counters.evicted),
		Int64GetDatum(refusals.capacity),
		Int64GetDatum(refusals.recorded),
		Int64GetDatum(refusals.overwritten),
		TimestampTzGetDatum(counters.reset_at)
	};
	bool		isnull[lengthof(values)];

	memset(isnull, !counters.available, sizeof(isnull));
	isnull[0] = false;
	PG_RETURN_DATUM(lockfence_return_row(fcinfo, values, isnull));
}

/* stats_reset(): every counter and the ring, of all databases */
Datum
lockfence_stats_reset(PG_FUNCTION_ARGS)
{
	lockfence_forget_refusals();
	lockfence_forget_stats();
	PG_RETURN_VOID();
}
