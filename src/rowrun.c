/*
 * rowrun.c
 *		Runs of rows: what was accepted for one is accepted for the next alike.
 *
 * A statement over many rows of one resource asks the same question again and
 * again.  If one value alone makes the resource's name, and is passed by value,
 * a row with the same value and the same token as the last accepted one needs
 * neither its name nor the memo, as long as nothing has changed in what the
 * transaction has presented and holds.
 *
 * A fence that was replaced stays in memory to the end of the transaction, so
 * within that a pointer tells fences apart.
 */
#include "postgres.h"

#include "fencedef.h"
#include "lockfence.h"
#include "rowrun.h"
#include "xact.h"

static struct
{
	const Fence *fence;
	uint64		version;		/* of what the transaction holds */
	Datum		value;			/* of the fence's key column */
	FenceToken	set;			/* in the token column; 0: not there */
	FenceToken	accepted;
} run;

/* Is a row like the last accepted one?  Tells the token accepted for it. */
bool
lockfence_run_goes_on(const Fence *fence, Datum value, FenceToken set,
					  FenceToken *accepted)
{
	*accepted = run.accepted;
	return run.fence == fence && run.value == value && run.set == set &&
		run.version == lockfence_held_version();
}

/* Remember a row whose token was accepted, and is held; unless a token ends, for which each row looks at the clock. */
void
lockfence_run_begin(const Fence *fence, Datum value, FenceToken set,
					FenceToken accepted)
{
	run.fence = lockfence_has_limits ? NULL : fence;
	run.version = lockfence_held_version();
	run.value = value;
	run.set = set;
	run.accepted = accepted;
}
