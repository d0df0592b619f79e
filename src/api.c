/*
 * api.c
 *		The API for lockfence_validate: see api.h.
 */
#include "postgres.h"

#include "api.h"
#include "shmem.h"
#include "validator.h"

extern PGDLLEXPORT const LockfenceApi *lockfence_api(void);

static Size
memory_size(void)
{
	return sizeof(LockfenceBreaker);
}

/* Make new memory ready for use. */
static void
init_memory(void *memory)
{
	LockfenceBreaker *fresh = (LockfenceBreaker *) memory;

	memset(fresh, 0, sizeof(*fresh));
	SpinLockInit(&fresh->mutex);
	ConditionVariableInit(&fresh->freed);
}

const SharedSegment lockfence_breaker_segment = {memory_size, init_memory};

/* Looked up by lockfence_validate, by its name. */
const LockfenceApi *
lockfence_api(void)
{
	static LockfenceApi api;

	api.layout = LOCKFENCE_API_LAYOUT;
	api.breaker = lockfence_shared_memory(&lockfence_breaker_segment);
	api.count_open = lockfence_count_open;
	api.visible = lockfence_visible_to_asker;
	return &api;
}
