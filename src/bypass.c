/*
 * bypass.c
 *		What passes by lockfence.bypass: counted, and logged once per transaction and
 *		table.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"

#include "bypass.h"
#include "stats.h"
#include "visible.h"
#include "xact.h"

/* A write to the table passes, or (NULL) DDL.  Returns true. */
bool
lockfence_note_bypass(Relation rel)
{
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
