/*
 * witness.h
 *		What a cached mark is right by, as the versions of four rows.
 */
#ifndef LOCKFENCE_WITNESS_H
#define LOCKFENCE_WITNESS_H

typedef struct MarkWitness
{
	uint64		writers[4];		/* of each row: its xmin, and its block */
	uint64		items;			/* in the block, 16 bits each */
} MarkWitness;

extern uint64 lockfence_witness_changes;
extern const MarkWitness *lockfence_mark_witness(void);
extern void lockfence_witness_at_relcache(Oid relid);
extern void lockfence_witness_at_syscache(int cacheid);

#endif							/* LOCKFENCE_WITNESS_H */
