/*
 * recorded.h
 *		A refusal, as it is recorded.
 */
#ifndef LOCKFENCE_RECORDED_H
#define LOCKFENCE_RECORDED_H

#include "datatype/timestamp.h"

#include "client.h"
#include "keptname.h"
#include "lockfence.h"

/*
 * What a stale holder did has a capacity of its own, wherever refusals are kept:
 * one of them must not be lost among thousands of another SQLSTATE.
 */
typedef enum RefusalClass
{
	STALE_REFUSALS,
	OTHER_REFUSALS,
	NREFUSAL_CLASSES
} RefusalClass;

typedef struct RecordedRefusal
{
	TimestampTz at;
	Oid			database;
	Oid			table;			/* InvalidOid: none, present() */
	int			sqlstate;
	FenceToken	token;			/* presented; 0: none */
	FenceToken	mark;			/* what it was compared with; 0: nothing */
	bool		advisory;		/* reported, and not refused */
	KeptName	resource;
	SessionClient client;
} RecordedRefusal;

/* How much a statistic can keep, keeps, and had to give up. */
typedef struct KeptTotals
{
	int64		capacity;
	int64		used;
	int64		evicted;
} KeptTotals;

#endif							/* LOCKFENCE_RECORDED_H */
