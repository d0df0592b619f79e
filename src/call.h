/*
 * call.h
 *		The token of a guarded function, while its statement runs.
 */
#ifndef LOCKFENCE_CALL_H
#define LOCKFENCE_CALL_H

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"

#include "lockfence.h"

/* A guarded function's token: for the rows that its statement writes to the target. */
typedef struct CallToken
{
	FenceToken	token;
	bool		refused;		/* and reported, by an advisory fence */
	Oid			target;
	List	   *below;			/* OIDs of its partitions and children */
	int			depth;			/* of triggers, in the target's guards */
	CommandId	command;		/* that the statement is; InvalidCommandId: not known */
	const struct CallToken *outer;	/* the call during which this one came */
} CallToken;

extern void lockfence_begin_call(CallToken *call, Relation target);
extern void lockfence_end_call(const CallToken *call);
extern const CallToken *lockfence_current_call;
extern const CallToken *lockfence_find_call(Relation rel);

/* The call that writes to the table, from the table's guard; NULL: none. */
static inline const CallToken *
lockfence_call_token(Relation rel)
{
	return likely(lockfence_current_call == NULL) ? NULL : lockfence_find_call(rel);
}

extern void lockfence_call_at_xact(XactEvent event);

#endif							/* LOCKFENCE_CALL_H */
