/*
 * xact.h
 *		What this transaction has presented.
 */
#ifndef LOCKFENCE_XACT_H
#define LOCKFENCE_XACT_H

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"

#include "lockfence.h"

/* What this transaction holds for a resource: an entry of its memo. */
typedef struct HeldToken
{
	FenceToken	token;			/* accepted; 0: nothing held */
	bool		refused;		/* presented all the same, under lockfence.enforcement: held is nothing */
	bool		advanced;		/* above all that stood before */
	bool		locked;			/* by a slot or a lock (reslock.c), not a tuple lock */
	Oid			table;			/* whose row gave the name, which the caller need
								 * not know; InvalidOid: the caller did */
} HeldToken;

typedef void (*HeldTokenVisitor) (const char *resource, const HeldToken *held, void *arg);

extern void lockfence_visit_held_tokens(HeldTokenVisitor visit, void *arg);
extern FenceToken lockfence_ambient_token(void);
extern void lockfence_set_ambient_token(FenceToken token);
extern void lockfence_check_ambient_token(void);
extern FenceToken lockfence_unchecked_token(void);
extern const HeldToken *lockfence_held_token(const char *resource);
extern bool lockfence_holds_token(FenceToken token);
extern void lockfence_remember_token(const char *resource, HeldToken held);
extern void lockfence_remember_refused(const char *resource, FenceToken token);
extern void lockfence_forget_token(const char *resource);
extern void lockfence_reveal_name(const char *resource);
extern int	lockfence_held_locks(void);
extern uint64 lockfence_held_version(void);
extern bool lockfence_first_bypass(Oid relid);

/* A guarded function's token: for the rows that its statement writes to the target. */
typedef struct CallToken
{
	FenceToken	token;
	bool		refused;		/* and reported, by an advisory fence */
	Oid			target;
	List	   *below;			/* OIDs of its partitions and children */
	int			depth;			/* of triggers, in the target's guards */
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

extern void lockfence_memo_at_xact(XactEvent event);
extern void lockfence_memo_at_subxact(SubXactEvent event);

#endif							/* LOCKFENCE_XACT_H */
