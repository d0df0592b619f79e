/*
 * coreapi.c
 *		The core's API, as this library finds it: see api.h.
 */
#include "postgres.h"

#include "fmgr.h"

#include "coreapi.h"
#include "lockfence.h"

/* The core's API.  The core is loaded for it if it is not there yet. */
const LockfenceApi *
lockfence_core_api(void)
{
	static const LockfenceApi *api = NULL;
	GetLockfenceApi get;

	if (api != NULL)
		return api;
	get = (GetLockfenceApi) load_external_function("$libdir/lockfence", LOCKFENCE_API_SYMBOL,
												  false, NULL);
	if (get == NULL || get()->layout != LOCKFENCE_API_LAYOUT)
		ereport(ERROR,
				(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
				 errmsg("the server runs a version of lockfence that does not fit lockfence_validate"),
				 errhint("Install both from one version, and restart the server.")));
	api = get();
	return api;
}
