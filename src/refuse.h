/*
 * refuse.h
 *		One function per refusal; each returns only on an advisory fence.
 */
#ifndef LOCKFENCE_REFUSE_H
#define LOCKFENCE_REFUSE_H

#include "datatype/timestamp.h"

#include "check.h"
#include "compat.h"

/* A refusal, as it is told to those who watch. */
typedef struct Refusal
{
	int			sqlstate;
	const char *resource;
	FenceToken	token;			/* presented; 0: none */
	FenceToken	mark;			/* what it was compared with; 0: nothing */
	TimestampTz risen_at;		/* when the mark became that, at the latest
								 * advance; 0: not known */
} Refusal;

typedef void (*RefusalSink) (const FencedWrite *write, const Refusal *refusal);

extern void lockfence_set_refusal_sink(RefusalSink function);
extern char *lockfence_row_name(Relation rel, TupleTableSlot *row);
extern void lockfence_refuse_stale(const FencedWrite *write, FenceToken token,
								   FenceToken mark, const char *mark_name,
								   TimestampTz risen_at);
extern void lockfence_refuse_repeated(const FencedWrite *write, FenceToken token);
extern void lockfence_refuse_old_epoch(const FencedWrite *write,
									   FenceToken token, int epoch);
extern void lockfence_refuse_lapsed(const FencedWrite *write, FenceToken token,
									const char *owner);
extern void lockfence_refuse_ungranted(const FencedWrite *write, FenceToken token,
									   const char *owner);
extern void lockfence_refuse_missing(const FencedWrite *write, bool is_any, const char *hint);
extern void lockfence_refuse_invalid(const FencedWrite *write, bool isnull,
									 FenceToken token);
extern void lockfence_refuse_unreadable_grant(const FencedWrite *write, const char *problem);
extern void lockfence_refuse_exhausted(const FencedWrite *write, FenceToken last);
extern void lockfence_refuse_unknown_epoch(const FencedWrite *write,
										   FenceToken token, int epoch);
extern void lockfence_refuse_sealed(const FencedWrite *write, const char *detail);
extern void lockfence_refuse_unrecorded(const FencedWrite *write, Oid target,
											bool has_tokens);
pg_noreturn extern void lockfence_refuse_unrecorded_ddl(void);
extern void lockfence_refuse_conflicting(const FencedWrite *write,
										 FenceToken token, const char *token_source,
										 FenceToken other, const char *other_source);
extern void lockfence_refuse_unvalidated(const FencedWrite *write,
										 FenceToken token, Oid validator);
extern void lockfence_refuse_unvouched(const FencedWrite *write, FenceToken token);
extern void lockfence_refuse_unavailable(const FencedWrite *write, FenceToken token,
										 const ErrorData *error);
extern void lockfence_refuse_expired(const FencedWrite *write, FenceToken token,
									 TimestampTz valid_until);
extern void lockfence_refuse_expired_at_commit(const FencedWrite *write, FenceToken token,
											   TimestampTz valid_until, bool tells_name);
extern void lockfence_refuse_truncate(const FencedWrite *write);
extern void lockfence_refuse_unchecked(FenceToken token, bool only_report);
extern void lockfence_report_undecided(const FencedWrite *write, const ErrorData *error);

#endif							/* LOCKFENCE_REFUSE_H */
