/*
 * breaker.c
 *		The circuit breaker: may a backend ask the lock service, which may be down?
 *
 * Closed: every backend may, up to a number of requests at once; a backend beyond
 * that number waits for a turn, within its own timeout.  So an outage meets a
 * bounded number of requests even before the first of them has failed.  Open,
 * after some failures in a row: no backend may, until after a while one of them
 * probes the service; the outcome closes the breaker or keeps it open.
 *
 * A backend takes a slot or the probe until a time, and gives it back earlier.  A
 * backend that ends gives it back at exit; if even that is missed, it lapses.
 *
 * Locking: one spinlock, held while a few words are read or set.  Without shared
 * memory each backend has a breaker of its own.
 */
#include "postgres.h"

#include <limits.h>

#include "storage/ipc.h"

#include "breaker.h"
#include "coreapi.h"
#include "settings.h"
#include "wait.h"

/* How much longer than its deadline a request may hold what it took. */
#define GRACE_US UINT64CONST(1000000)

typedef enum Entry
{
	ENTERED,
	MUST_WAIT,
	IS_OPEN
} Entry;

/* What this backend has taken; taken_until is 0 if nothing. */
static uint64 taken_until = 0;
static int	taken_slot;			/* -1: the probe */

static LockfenceBreaker *breaker = NULL;

/* A backend ends in the middle of a request. */
static void
leave_at_exit(int code, Datum arg)
{
	lockfence_breaker_leave(VERDICT_NONE);
}

static void
find_breaker(void)
{
	static LockfenceBreaker own;
	LockfenceBreaker *shared;

	if (breaker != NULL)
		return;
	SpinLockInit(&own.mutex);
	ConditionVariableInit(&own.freed);
	shared = lockfence_core_api()->breaker;
	before_shmem_exit(leave_at_exit, (Datum) 0);
	breaker = shared ? shared : &own;
}

/* Take a slot that is free. */
static bool
take_slot(uint64 now, uint64 until)
{
	for (int i = 0; i < LOCKFENCE_BREAKER_SLOTS; i++)
	{
		if (breaker->slots[i] > now)
			continue;
		breaker->slots[i] = taken_until = until;
		taken_slot = i;
		return true;
	}
	return false;
}

/* Take the probe, if it is time for one and no other backend has it. */
static bool
take_probe(uint64 now, uint64 until)
{
	if (now < breaker->opened_at + (uint64) lockfence_settings.breaker_reset * 1000 ||
		now < breaker->probe_until)
		return false;
	breaker->probe_until = taken_until = until;
	taken_slot = -1;
	return true;
}

static Entry
try_enter(uint64 deadline)
{
	uint64		now = lockfence_now_us();
	uint64		until = deadline + GRACE_US;
	Entry		entry;

	SpinLockAcquire(&breaker->mutex);
	if (breaker->opened_at == 0 || lockfence_settings.breaker_failures == 0)
		entry = take_slot(now, until) ? ENTERED : MUST_WAIT;
	else
		entry = take_probe(now, until) ? ENTERED : IS_OPEN;
	SpinLockRelease(&breaker->mutex);
	return entry;
}

/* Wait for a turn, until the deadline. */
static Entry
wait_to_enter(uint64 deadline)
{
	Entry		entry;

	ConditionVariablePrepareToSleep(&breaker->freed);
	while ((entry = try_enter(deadline)) == MUST_WAIT)
	{
		uint64		now = lockfence_now_us();

		if (now >= deadline)
			break;
		(void) ConditionVariableTimedSleep(&breaker->freed, (deadline - now) / 1000 + 1,
										   lockfence_wait_event());
	}
	ConditionVariableCancelSleep();
	return entry;
}

/* May this backend ask?  If so, it must call lockfence_breaker_leave() later. */
bool
lockfence_breaker_enter(uint64 deadline, Report *report)
{
	Entry		entry;

	find_breaker();
	entry = try_enter(deadline);
	if (entry == MUST_WAIT)
		entry = wait_to_enter(deadline);
	if (entry == MUST_WAIT)
		return lockfence_trouble(report, TROUBLE_BREAKER,
								 "%d requests were already in progress, and none ended within %d ms.",
								 LOCKFENCE_BREAKER_SLOTS, lockfence_settings.timeout);
	if (entry == IS_OPEN)
		return lockfence_trouble(report, TROUBLE_BREAKER,
								 "The lock service has failed %d times in a row, and is asked only once every %d ms.",
								 lockfence_settings.breaker_failures, lockfence_settings.breaker_reset);
	return true;
}

/* Give back what was taken, unless it has lapsed and another backend has it. */
static void
give_back(void)
{
	uint64	   *until = taken_slot < 0 ? &breaker->probe_until : &breaker->slots[taken_slot];

	if (*until == taken_until)
		*until = 0;
}

/* Apply the verdict; returns whether the breaker has opened or closed. */
static bool
judge(Verdict verdict, bool probed)
{
	bool		was_open = breaker->opened_at != 0;

	if (verdict == VERDICT_GOOD)
	{
		breaker->failures = 0;
		breaker->opened_at = 0;
		return was_open;
	}
	if (verdict == VERDICT_NONE || (was_open && !probed))
		return false;
	if (breaker->failures < INT_MAX)
		breaker->failures++;
	if (lockfence_settings.breaker_failures == 0 ||
		(!was_open && breaker->failures < lockfence_settings.breaker_failures))
		return false;
	breaker->opened_at = lockfence_now_us();
	return !was_open;
}

/* Leave, and tell what became of the request. */
void
lockfence_breaker_leave(Verdict verdict)
{
	bool		turned;
	bool		is_open;

	if (taken_until == 0)
		return;
	SpinLockAcquire(&breaker->mutex);
	give_back();
	turned = judge(verdict, taken_slot < 0);
	is_open = breaker->opened_at != 0;
	SpinLockRelease(&breaker->mutex);
	taken_until = 0;

	if (turned && is_open)
		ConditionVariableBroadcast(&breaker->freed);
	else
		ConditionVariableSignal(&breaker->freed);
	if (turned)
		ereport(LOG,
				(is_open ?
				 errmsg("lockfence_validate: the lock service is not asked any more after %d failures in a row",
						lockfence_settings.breaker_failures) :
				 errmsg("lockfence_validate: the lock service answers again")));
}
