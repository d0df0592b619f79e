/*
 * xact.h
 *		What this transaction has presented.
 */
#ifndef LOCKFENCE_XACT_H
#define LOCKFENCE_XACT_H

#include "access/xact.h"
#include "datatype/timestamp.h"

#include "lockfence.h"

/* Until when a token counts. */
typedef struct TokenLimit
{
	TimestampTz until;			/* 0: without end */
	bool		by_lease;		/* as long as its lease, which may be renewed */
	bool		written;		/* a table was, under the token */
} TokenLimit;

/* What this transaction holds for a resource: an entry of its memo. */
typedef struct HeldToken
{
	FenceToken	token;			/* accepted; 0: nothing held */
	bool		refused;		/* presented all the same, under lockfence.enforcement: held is nothing */
	bool		advanced;		/* above all that stood before */
	bool		locked;			/* by a slot or a lock (reslock.c), not a tuple lock */
	Oid			table;			/* whose row gave the name, which the caller need
								 * not know; InvalidOid: the caller did */
	TokenLimit	limit;
} HeldToken;

typedef void (*HeldTokenVisitor) (const char *resource, const HeldToken *held, void *arg);

/* Rows that guards have accepted in this transaction, also those that were rolled back since. */
extern uint64 lockfence_accepted_rows;

extern void lockfence_visit_held_tokens(HeldTokenVisitor visit, void *arg);
extern FenceToken lockfence_ambient_token(void);
extern void lockfence_set_ambient_token(FenceToken token);
extern void lockfence_check_ambient_token(void);
extern FenceToken lockfence_unchecked_token(void);
extern bool lockfence_ambient_was_lost;
extern const HeldToken *lockfence_held_token(const char *resource);
extern bool lockfence_holds_token(FenceToken token);
extern const char *lockfence_remember_token(const char *resource, HeldToken held);
extern void lockfence_remember_refused(const char *resource, FenceToken token);
extern bool lockfence_has_limits;
extern void lockfence_limit_token(const char *resource, FenceToken token, TokenLimit limit);
extern void lockfence_limit_rows(TimestampTz until);
extern TimestampTz lockfence_limit_of_rows(void);
extern void lockfence_forget_token(const char *resource);
extern void lockfence_reveal_name(const char *resource);
extern int	lockfence_held_locks(void);
extern uint64 lockfence_held_version(void);
extern void lockfence_change_version(void);
extern bool lockfence_first_bypass(Oid relid);

extern void lockfence_memo_at_xact(XactEvent event);
extern void lockfence_memo_at_subxact(SubXactEvent event);

#endif							/* LOCKFENCE_XACT_H */
