/*
 * streak.c
 *		Rows in a row: what was accepted for one is accepted for the next alike.
 *
 * A statement over many rows of one resource asks the same question again and
 * again.  Where the resource follows from one value alone, passed by value,
 * a row with the same value and the same token as the last accepted one needs
 * neither its name nor the memo, as long as nothing has changed in what the
 * transaction has presented and holds.
 *
 * A fence that was replaced stays in memory to the end of the transaction, so
 * within that a pointer tells fences apart.
 */
#include "postgres.h"

#include "fencecache.h"
#include "lockfence.h"
#include "streak.h"
#include "xact.h"

static struct
{
	const Fence *fence;
	uint64		version;		/* of what the transaction holds */
	Datum		value;			/* of the fence's key column */
	FenceToken	shown;			/* in the token column; 0: not there */
	FenceToken	accepted;
} streak;

/* Is a row like the last accepted one?  Tells the token accepted for it. */
bool
lockfence_streak_goes_on(const Fence *fence, Datum value, FenceToken shown,
						 FenceToken *accepted)
{
	*accepted = streak.accepted;
	return streak.fence == fence && streak.value == value && streak.shown == shown &&
		streak.version == lockfence_held_version();
}

/* Note a row whose token was accepted, and is held. */
void
lockfence_streak_begin(const Fence *fence, Datum value, FenceToken shown,
					   FenceToken accepted)
{
	streak.fence = fence;
	streak.version = lockfence_held_version();
	streak.value = value;
	streak.shown = shown;
	streak.accepted = accepted;
}
