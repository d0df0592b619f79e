/*
 * hint.c
 *		Where this backend saw marks last, so that it need not ask the index.
 *
 * A hint is a guess and never an answer: mark.c looks whether the version that
 * stands there is visible and bears the resource's full name, and asks the
 * index otherwise.  A name has one mark, so a version that passes is it.
 *
 * The buffer is part of the hint.  A page that has left its buffer is not read
 * for a guess, and one that is no part of the table any more never found.
 */
#include "postgres.h"

#include "lockfence.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

/* Each hint has one place; a power of two. */
#define NHINTS 1024

typedef struct Hint
{
	uint64		hash;			/* of the resource */
	ItemPointerData tid;
	Buffer		buffer;			/* InvalidBuffer: free */
} Hint;

static Hint *hints = NULL;

static Hint *
hint_of(const ResourceKey *resource)
{
	if (hints == NULL)
		hints = MemoryContextAllocZero(TopMemoryContext, NHINTS * sizeof(Hint));
	return &hints[resource->hash % NHINTS];
}

/* Where the resource's mark was seen last; false: nowhere. */
bool
lockfence_hint_find(const ResourceKey *resource, ItemPointer tid, Buffer *buffer)
{
	const Hint *hint = hint_of(resource);

	*tid = hint->tid;
	*buffer = hint->buffer;
	return BufferIsValid(hint->buffer) && hint->hash == resource->hash;
}

/* Note where the resource's mark is. */
void
lockfence_hint_put(const ResourceKey *resource, ItemPointer tid, Buffer buffer)
{
	*hint_of(resource) = (Hint) {resource->hash, *tid, buffer};
}
