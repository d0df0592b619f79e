/*
 * mark.h
 *		The mark of one resource.
 */
#ifndef LOCKFENCE_MARK_H
#define LOCKFENCE_MARK_H

#include "access/htup.h"
#include "datatype/timestamp.h"
#include "storage/buf.h"
#include "utils/rel.h"

#include "lockfence.h"
#include "resource.h"

typedef struct MarkScan
{
	const ResourceKey *resource;
	Relation	rel;
	HeapTupleData version;		/* the one that was read last, ... */
	Buffer		buffer;			/* ... in its page, which is pinned */
	struct SnapshotData *dirty;
	bool		found;			/* a mark, committed or of this transaction */
	bool		own;			/* ... of this transaction */
	bool		of_command;		/* ... of its current command */
	FenceToken	token;
	uint64		witness;		/* of the mark, before the read (cache.c) */
	TransactionId changing;		/* another transaction changes the mark */
	FenceToken	pending;		/* ... to this token; 0: removes it */
} MarkScan;

extern void lockfence_mark_begin(MarkScan *scan, const ResourceKey *resource);
extern void lockfence_mark_look_again(MarkScan *scan);
extern TimestampTz lockfence_mark_advanced_at(const MarkScan *scan);
extern void lockfence_mark_unpin(MarkScan *scan);
extern bool lockfence_mark_unchanged(MarkScan *scan);
extern void lockfence_mark_write(MarkScan *scan, FenceToken token);
extern void lockfence_mark_remove(MarkScan *scan);
extern void lockfence_mark_end(MarkScan *scan);
extern FenceToken lockfence_mark_peek(const char *resource);

#endif							/* LOCKFENCE_MARK_H */
