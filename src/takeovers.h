/*
 * takeovers.h
 *		The last changes of marks, in shared memory.
 */
#ifndef LOCKFENCE_TAKEOVERS_H
#define LOCKFENCE_TAKEOVERS_H

#include "datatype/timestamp.h"

#include "client.h"
#include "keptname.h"
#include "lockfence.h"
#include "recorded.h"
#include "shmem.h"

/* By which way a token became the mark. */
typedef enum AdvanceWay
{
	BY_PRESENT,
	BY_COLUMN,
	BY_GUARDED,
	BY_ISSUE,
	BY_RAISE_MARK,
	BY_RESET_MARK,
	BY_REPLICATION,
	BY_RESTORE
} AdvanceWay;

/* One change of a mark. */
typedef struct MarkChange
{
	FenceToken	before;			/* 0: there was no mark */
	FenceToken	token;
	AdvanceWay	way;
} MarkChange;

/* The same, committed or prepared. */
typedef struct Takeover
{
	TimestampTz at;
	Oid			database;
	Oid			table;			/* written to; InvalidOid: none */
	uint64		id;				/* of the resource, in all databases; 0: it
								 * cannot be told from others */
	MarkChange	change;
	bool		prepared;		/* by PREPARE TRANSACTION, so it may still be rolled back */
	int64		left_out;		/* further changes of the transaction, not kept */
	SessionClient client;
	KeptName	resource;		/* the last, since it is mostly short */
} Takeover;

extern void lockfence_takeovers_init(void);
extern const SharedSegment lockfence_takeovers_segment;
extern void lockfence_keep_takeover(const Takeover *takeover, size_t name_length);
extern TimestampTz lockfence_risen_at(uint64 id, FenceToken token);
extern KeptTotals lockfence_takeover_totals(bool of_first_marks);
extern void lockfence_forget_takeovers(void);

#endif							/* LOCKFENCE_TAKEOVERS_H */
