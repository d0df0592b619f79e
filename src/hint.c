/*
 * hint.c
 *		Where this backend saw marks last, which saves looking in an index.
 *
 * A hint is a guess and never an answer: mark.c checks that the version which is
 * there is visible and has the resource's full name, and otherwise looks in an
 * index.
 *
 * The buffer is part of the hint.  A page that has left its buffer is not read for
 * a guess, and a page that no longer belongs to the table is never found.
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "hint.h"
#include "resource.h"

/* A hint is in one of four adjacent entries; 4096 take 96 kB. */
#define NHINTS 4096
#define NWAYS 4

typedef struct Hint
{
	uint64		hash;			/* of the resource */
	ItemPointerData tid;
	Buffer		buffer;			/* InvalidBuffer: free */
} Hint;

static Hint *hints = NULL;

/* The entries where a resource's hint can be; a new one takes the first. */
static Hint *
entries_of(const ResourceKey *resource)
{
	if (hints == NULL)
		hints = MemoryContextAllocZero(TopMemoryContext, NHINTS * sizeof(Hint));
	return &hints[resource->hash % (NHINTS / NWAYS) * NWAYS];
}

/* Which of the entries has the resource's hint; NWAYS: none. */
static int
find_entry(const Hint *entries, const ResourceKey *resource)
{
	int			i = 0;

	while (i < NWAYS && !(BufferIsValid(entries[i].buffer) &&
							entries[i].hash == resource->hash))
		i++;
	return i;
}

/* Where the resource's mark was seen last; false: it has no hint. */
bool
lockfence_hint_find(const ResourceKey *resource, ItemPointer tid, Buffer *buffer)
{
	const Hint *entries = entries_of(resource);
	int			i = find_entry(entries, resource);

	if (i == NWAYS)
		return false;
	*tid = entries[i].tid;
	*buffer = entries[i].buffer;
	return true;
}

/* Enter where the resource's mark is into the first entry; the others move down, and the last one is lost. */
void
lockfence_hint_put(const ResourceKey *resource, ItemPointer tid, Buffer buffer)
{
	Hint	   *entries = entries_of(resource);
	int			i = Min(find_entry(entries, resource), NWAYS - 1);

	memmove(&entries[1], &entries[0], i * sizeof(Hint));
	entries[0] = (Hint) {resource->hash, *tid, buffer};
}
