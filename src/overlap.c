/*
 * overlap.c
 *		How late stale tokens come: the time since the mark rose above them.
 *
 * So long, at the least, two holders have taken themselves for the holder.  The earliest
 * change that raised the mark above the token counts, if it is among the last takeovers.
 * Otherwise the mark tells when its last change began, and the time is too short if there
 * were several.
 *
 * This is called amid a refusal, which must not fail or wait for its sake.  So it takes
 * no locks but spinlocks, and reads from the catalogs only what the message of the
 * refusal names, too.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "overlap.h"
#include "resource.h"
#include "rowname.h"
#include "stats.h"
#include "takeovers.h"
#include "token.h"

/* A time counts in every bucket that is long enough for it. */
static const struct
{
	LockfenceCounter counter;
	int64		most;			/* microseconds */
}			buckets[] = {
#define BUCKET(counter, column, most) {LOCKFENCE_##counter, most},
#include "overlap.def"
};

/* Count a time, in microseconds. */
static void
count_overlap(Relation rel, int64 overlap)
{
	for (int i = 0; i < lengthof(buckets); i++)
	{
		if (overlap <= buckets[i].most)
			lockfence_count(rel, buckets[i].counter);
	}
	lockfence_count_more(rel, LOCKFENCE_TOTAL_OVERLAP, overlap);
	lockfence_count_highest(rel, LOCKFENCE_MAX_OVERLAP, overlap);
}

/* By what the last takeovers know what was written to. */
static uint64
takeover_id(const FencedWrite *write)
{
	ResourceKey key;

	if (write->resource == NULL)
		return write->row ? lockfence_name_row(write->rel, write->row).id : 0;
	lockfence_set_resource_key(&key, write->resource);
	return key.hash;
}

/*
 * Measure how late the refused token is.  On a single-use fence it may equal the mark,
 * and is not late then.  The clock may have been set back since.
 */
void
lockfence_measure_overlap(const FencedWrite *write, const Refusal *refusal)
{
	TimestampTz risen_at;

	if (lockfence_compare(refusal->token, refusal->mark) == EQUAL)
		return;
	risen_at = lockfence_risen_at(takeover_id(write), refusal->token);
	if (risen_at == 0)
		risen_at = refusal->risen_at;
	if (risen_at == 0)
		lockfence_count(write->rel, LOCKFENCE_UNKNOWN_OVERLAP);
	else
		count_overlap(write->rel, Max(GetCurrentTimestamp() - risen_at, 0));
}
