/*
 * stats.c
 *	  Counters since the start.
 */
#include <stdatomic.h>

#include "arbiter.h"

static atomic_long counters[COUNTERS];

static const char *const names[COUNTERS] = {
	[COUNT_GRANTED] = "granted",
	[COUNT_HELD] = "held",
	[COUNT_AMBIGUOUS] = "ambiguous",
	[COUNT_AMBIGUOUS_APPLIED] = "ambiguous_applied",
	[COUNT_RENEWED] = "renewed",
	[COUNT_RENEWAL_SHED] = "renewals_shed",
	[COUNT_RENEWAL_GONE] = "renewals_gone",
	[COUNT_RENEWAL_FAILED] = "renewals_failed",
	[COUNT_ACQUIRE_SHED] = "acquires_shed",
	[COUNT_RELEASED] = "released",
	[COUNT_SEALED_ANSWERS] = "sealed_answers",
};

void
count(counter which)
{
	atomic_fetch_add_explicit(&counters[which], 1, memory_order_relaxed);
}

json_t *
stats_json(void)
{
	json_t	   *all = json_object();
	char		reason[160];

	for (int i = 0; i < COUNTERS; i++)
		json_object_set_new(all, names[i], json_integer(atomic_load(&counters[i])));
	json_object_set_new(all, "epoch", json_integer(seal_highest_epoch()));
	json_object_set_new(all, "sealed", json_boolean(seal_is_sealed(reason, sizeof reason)));
	json_object_set_new(all, "sealed_because", json_string(reason));
	json_object_set_new(all, "endpoint", json_string(conf.endpoints[etcd_endpoint()]));
	return all;
}
