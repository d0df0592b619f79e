/*
 * settings.c
 *		Settings that more than one file reads; others are defined by the file that reads them.
 */
#include "postgres.h"

#include <limits.h>

#include "utils/guc.h"

#include "settings.h"

int			lockfence_enforcement = LOCKFENCE_ENFORCE_DECLARED;
bool		lockfence_bypass = false;
bool		lockfence_preempt = false;
bool		lockfence_limit_leases = false;
int			lockfence_max_resource_locks = 64;
int			lockfence_unknown_resource = LOCKFENCE_UNKNOWN_NOTICE;

/* read by the SQL of lockfence_lease */
static bool notify_leases = false;

static const struct config_enum_entry enforcement_options[] = {
	{"declared", LOCKFENCE_ENFORCE_DECLARED, false},
	{"advisory", LOCKFENCE_ENFORCE_NONE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry unknown_resource_options[] = {
	{"ignore", LOCKFENCE_UNKNOWN_IGNORE, false},
	{"notice", LOCKFENCE_UNKNOWN_NOTICE, false},
	{"warning", LOCKFENCE_UNKNOWN_WARNING, false},
	{NULL, 0, false}
};

/* Called once per backend, or by the postmaster. */
void
lockfence_settings_init(void)
{
	DefineCustomEnumVariable("lockfence.enforcement",
							 "Sets whether fences refuse writes as declared, or only report what they would refuse.",
							 "advisory: every fence reports, and so do lockfence.present() and the guarded functions.",
							 &lockfence_enforcement, LOCKFENCE_ENFORCE_DECLARED,
							 enforcement_options, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("lockfence.bypass",
							 "Lets writes to fenced tables pass without a token.",
							 "For maintenance that rewrites rows. Logged once per transaction and table.",
							 &lockfence_bypass, false, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("lockfence.preempt",
							 "Ends transactions that hold a resource by a stale token.",
							 "An advance then cancels or terminates them instead of waiting for their end.",
							 &lockfence_preempt, false, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("lockfence.max_resource_locks",
							"Sets how many resources a transaction holds in shared memory.",
							"Beyond that number it locks the marks' tuples instead, which does not fill the lock table.",
							&lockfence_max_resource_locks, 64, 0, INT_MAX,
							PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("lockfence.unknown_resource",
							 "Sets the message about a resource name that no fence can make.",
							 "When a token is first presented for it, or an administrator sets its mark.",
							 &lockfence_unknown_resource, LOCKFENCE_UNKNOWN_NOTICE,
							 unknown_resource_options, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("lockfence.limit_leases",
							 "Refuses writes and commits under the token of a lease that has ended.",
							 "By the clock of this server, though no other holder has taken the lease over.",
							 &lockfence_limit_leases, false, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("lockfence.notify_leases",
							 "Notifies on channel \"lockfence_lease\" of leases that end by a takeover or a release.",
							 "The payload is the name of the resource.",
							 &notify_leases, false, PGC_SUSET, 0,
							 NULL, NULL, NULL);
}
