/*
 * hint.c
 *		Where this backend saw marks last, so that it need not ask an index.
 *
 * A hint is a guess and never an answer: mark.c looks whether the version that
 * stands there is visible and bears the resource's full name, and asks an
 * index otherwise.
 *
 * The buffer is part of the hint.  A page that has left its buffer is not read
 * for a guess, and one that is no part of the table any more never found.
 */
#include "postgres.h"

#include "lockfence.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

/* A hint is in one of two places beside each other; 4096 take 96 kB. */
#define NHINTS 4096
#define NPLACES 2

typedef struct Hint
{
	uint64		hash;			/* of the resource */
	ItemPointerData tid;
	Buffer		buffer;			/* InvalidBuffer: free */
} Hint;

static Hint *hints = NULL;

/* The places of a resource's hint; a new one takes the first. */
static Hint *
places_of(const ResourceKey *resource)
{
	if (hints == NULL)
		hints = MemoryContextAllocZero(TopMemoryContext, NHINTS * sizeof(Hint));
	return &hints[resource->hash % (NHINTS / NPLACES) * NPLACES];
}

static bool
hint_matches(const Hint *hint, const ResourceKey *resource)
{
	return BufferIsValid(hint->buffer) && hint->hash == resource->hash;
}

/* Where the resource's mark was seen last; false: nowhere. */
bool
lockfence_hint_find(const ResourceKey *resource, ItemPointer tid, Buffer *buffer)
{
	const Hint *hint = places_of(resource);

	if (!hint_matches(hint, resource))
		hint++;
	*tid = hint->tid;
	*buffer = hint->buffer;
	return hint_matches(hint, resource);
}

/* Note where the resource's mark is. */
void
lockfence_hint_put(const ResourceKey *resource, ItemPointer tid, Buffer buffer)
{
	Hint	   *places = places_of(resource);

	if (!hint_matches(&places[0], resource))
		places[1] = places[0];
	places[0] = (Hint) {resource->hash, *tid, buffer};
}
