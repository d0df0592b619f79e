/*
 * statsfuncs.c
 *		stats_info(), stats_limits() and stats_reset(), for all statistics together.
 */
#include "postgres.h"

#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "offenders.h"
#include "refusals.h"
#include "rows.h"
#include "stats.h"
#include "takeovers.h"

PG_FUNCTION_INFO_V1(lockfence_stats_info);
PG_FUNCTION_INFO_V1(lockfence_stats_limits);
PG_FUNCTION_INFO_V1(lockfence_stats_reset);

/* stats_info(): what is kept at all, how much of it, and since when */
Datum
lockfence_stats_info(PG_FUNCTION_ARGS)
{
	StatsTotals counters = lockfence_stats_totals();
	KeptTotals	stale = lockfence_refusal_totals(STALE_REFUSALS);
	KeptTotals	others = lockfence_refusal_totals(OTHER_REFUSALS);
	Datum		values[] = {
		BoolGetDatum(counters.available),
		Int64GetDatum(counters.capacity),
		Int64GetDatum(counters.used),
		Int64GetDatum(counters.evicted),
		Int64GetDatum(stale.capacity),	/* of each */
		Int64GetDatum(stale.used + stale.evicted + others.used + others.evicted),
		Int64GetDatum(stale.evicted + others.evicted),
		TimestampTzGetDatum(counters.reset_at)
	};
	bool		isnull[lengthof(values)];

	memset(isnull, !counters.available, sizeof(isnull));
	isnull[0] = false;
	PG_RETURN_DATUM(lockfence_return_row(fcinfo, values, isnull));
}

/* Add one row of stats_limits(). */
static void
put_limit(FunctionCallInfo fcinfo, const char *kept, const char *setting, KeptTotals totals)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[] = {
		CStringGetTextDatum(kept),
		CStringGetTextDatum(setting),
		Int64GetDatum(totals.capacity),
		Int64GetDatum(totals.used),
		Int64GetDatum(totals.evicted)
	};
	bool		isnull[lengthof(values)] = {false};

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

/* stats_limits(): how much of each statistic can be kept, is kept, and gave way; no rows where nothing is kept */
Datum
lockfence_stats_limits(PG_FUNCTION_ARGS)
{
	StatsTotals counters = lockfence_stats_totals();

	lockfence_begin_rows(fcinfo);
	if (!counters.available)
		return (Datum) 0;
	put_limit(fcinfo, "tables", "lockfence.max_tables",
			  (KeptTotals) {counters.capacity, counters.used, counters.evicted});
	put_limit(fcinfo, "refusals of stale tokens", "lockfence.max_refusals", lockfence_refusal_totals(STALE_REFUSALS));
	put_limit(fcinfo, "other refusals", "lockfence.max_refusals", lockfence_refusal_totals(OTHER_REFUSALS));
	put_limit(fcinfo, "offenders by stale tokens", "lockfence.max_offenders", lockfence_offender_totals(STALE_REFUSALS));
	put_limit(fcinfo, "other offenders", "lockfence.max_offenders", lockfence_offender_totals(OTHER_REFUSALS));
	put_limit(fcinfo, "takeovers", "lockfence.max_takeovers", lockfence_takeover_totals(false));
	put_limit(fcinfo, "first marks", "lockfence.max_takeovers", lockfence_takeover_totals(true));
	return (Datum) 0;
}

/* stats_reset(): every counter, the rings, the offenders and the takeovers, of all databases */
Datum
lockfence_stats_reset(PG_FUNCTION_ARGS)
{
	lockfence_forget_refusals();
	lockfence_forget_offenders();
	lockfence_forget_takeovers();
	lockfence_forget_stats();
	PG_RETURN_VOID();
}
