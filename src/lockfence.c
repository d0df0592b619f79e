/*
 * lockfence.c
 *		Module magic, start-up and settings; nothing else.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"

#include "advances.h"
#include "api.h"
#include "cache.h"
#include "compat.h"
#include "ended.h"
#include "events.h"
#include "fastpath.h"
#include "grant.h"
#include "guarded.h"
#include "lease.h"
#include "limit.h"
#include "offenders.h"
#include "refusals.h"
#include "refuse.h"
#include "settings.h"
#include "shmem.h"
#include "stats.h"
#include "takeovers.h"
#include "timeline.h"
#include "unchecked.h"
#include "validator.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static const SharedSegment *const segments[] = {
	&lockfence_stats_segment,
	&lockfence_refusals_segment,
	&lockfence_offenders_segment,
	&lockfence_takeovers_segment,
	&lockfence_fastpath_segment,
	&lockfence_cache_segment,
	&lockfence_breaker_segment,
	&lockfence_ended_segment
};

void
_PG_init(void)
{
	lockfence_settings_init();
	lockfence_grant_init();
	lockfence_events_init();
	lockfence_timeline_init();
	lockfence_validator_init();
	lockfence_guarded_init();
	lockfence_stats_init();
	lockfence_refusals_init();
	lockfence_offenders_init();
	lockfence_takeovers_init();
	lockfence_advances_init();
	lockfence_ended_init();
	lockfence_unchecked_init();
	lockfence_set_refusal_sink(lockfence_record_refusal);
	lockfence_set_lease_end(lockfence_lease_end);
	lockfence_cache_init();
	lockfence_shmem_init(segments, lengthof(segments));
	MarkGUCPrefixReserved("lockfence");
}
