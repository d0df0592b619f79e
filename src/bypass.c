/*
 * bypass.c
 *		What passes by lockfence.bypass: counted, and logged once per transaction and
 *		table.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"

#include "bypass.h"
#include "settings.h"
#include "stats.h"
#include "visible.h"
#include "xact.h"

/* Does the setting let a write to the table pass, or (NULL) DDL? */
bool
lockfence_is_bypassed(Relation rel)
{
	if (!lockfence_bypass)
		return false;
	lockfence_count(rel, LOCKFENCE_BYPASSED);
	if (lockfence_first_bypass(rel ? RelationGetRelid(rel) : InvalidOid))
		ereport(LOG,
				(rel ? errmsg("fence of table \"%s\" is bypassed",
							  lockfence_visible(RelationGetRelationName(rel))) :
				 errmsg("fence of DDL is bypassed"),
				 errdetail("lockfence.bypass is on for role \"%s\".",
						   lockfence_visible(GetUserNameFromId(GetUserId(), true))),
				 rel ? errtable(rel) : 0));
	return true;
}
