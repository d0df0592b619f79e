/*
 * lend.c
 *		What the core lends to lockfence_validate: see lend.h.
 */
#include "postgres.h"

#include "lend.h"
#include "shmem.h"
#include "validator.h"

extern PGDLLEXPORT const LockfenceLoan *lockfence_lend(void);

Size
lockfence_breaker_size(void)
{
	return sizeof(LockfenceBreaker);
}

/* Make new memory ready for use. */
void
lockfence_breaker_init_memory(void *memory)
{
	LockfenceBreaker *fresh = (LockfenceBreaker *) memory;

	memset(fresh, 0, sizeof(*fresh));
	SpinLockInit(&fresh->mutex);
	ConditionVariableInit(&fresh->freed);
}

/* Looked up by lockfence_validate, by its name. */
const LockfenceLoan *
lockfence_lend(void)
{
	static LockfenceLoan loan;

	loan.layout = LOCKFENCE_LOAN_LAYOUT;
	loan.breaker = lockfence_shared_memory(LOCKFENCE_SHARED_BREAKER);
	loan.count_open = lockfence_count_open;
	loan.visible = lockfence_visible_to_asker;
	return &loan;
}
