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

#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "hint.h"
#include "resource.h"

/* A hint is in one of four places beside each other; 4096 take 96 kB. */
#define NHINTS 4096
#define NPLACES 4

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

/* Which of the places has the resource's hint; NPLACES: none. */
static int
find_place(const Hint *places, const ResourceKey *resource)
{
	int			i = 0;

	while (i < NPLACES && !(BufferIsValid(places[i].buffer) &&
							places[i].hash == resource->hash))
		i++;
	return i;
}

/* Where the resource's mark was seen last; false: nowhere. */
bool
lockfence_hint_find(const ResourceKey *resource, ItemPointer tid, Buffer *buffer)
{
	const Hint *places = places_of(resource);
	int			i = find_place(places, resource);

	if (i == NPLACES)
		return false;
	*tid = places[i].tid;
	*buffer = places[i].buffer;
	return true;
}

/* Note where the resource's mark is, in the first place; the others go down, and the last one goes. */
void
lockfence_hint_put(const ResourceKey *resource, ItemPointer tid, Buffer buffer)
{
	Hint	   *places = places_of(resource);
	int			i = Min(find_place(places, resource), NPLACES - 1);

	memmove(&places[1], &places[0], i * sizeof(Hint));
	places[0] = (Hint) {resource->hash, *tid, buffer};
}
