/*
 * breaker.c
 *		Who may ask the lock service, while it may be down.
 *
 * Closed: everybody may, up to a number of requests at once; who comes on top
 * waits for a turn, within its own time.  So an outage meets a bounded number of
 * requests even before the first of them has failed.  Open, after some failures
 * in a row: nobody may, until one after a while probes the service; what
 * becomes of the probe closes the breaker or keeps it open.
 *
 * A slot or a probe is taken until a time and given back early.  A backend that
 * ends with one gives it back by its exit; what even that misses lapses.
 *
 * Locking: one spinlock, held for a look at a few words.  Without shared memory
 * each backend has a breaker of its own.
 */
#include "postgres.h"

#include <limits.h>

#include "portability/instr_time.h"
#include "storage/ipc.h"

#include "validate.h"

/* How much longer than its deadline a request may hold what it took. */
#define GRACE_US UINT64CONST(1000000)

typedef enum Entry
{
	ENTERED,
	MUST_WAIT,
	IS_OPEN
} Entry;

/* What this backend has taken; until is 0 if nothing. */
static uint64 taken_until = 0;
static int	taken_slot;			/* -1: the probe */

static LockfenceBreaker *breaker = NULL;

/* Microseconds on a clock that never goes back. */
uint64
lockfence_now_us(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (uint64) INSTR_TIME_GET_MICROSEC(now);
}

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

/* Take the probe, if it is time for one and nobody else has it. */
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

/* May the service be asked?  Who is let in has to leave. */
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
								 "%d requests were under way already, and none ended within %d ms.",
								 LOCKFENCE_BREAKER_SLOTS, lockfence_settings.timeout);
	if (entry == IS_OPEN)
		return lockfence_trouble(report, TROUBLE_BREAKER,
								 "It has failed %d times in a row, and is left alone but for one request every %d ms.",
								 lockfence_settings.breaker_failures, lockfence_settings.breaker_reset);
	return true;
}

/* Give back what was taken, unless it has lapsed and is another's. */
static void
give_back(void)
{
	uint64	   *place = taken_slot < 0 ? &breaker->probe_until : &breaker->slots[taken_slot];

	if (*place == taken_until)
		*place = 0;
}

/* Take the verdict in; returns whether the breaker has opened or closed. */
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
				 errmsg("lockfence_validate: the lock service is left alone after %d failures in a row",
						lockfence_settings.breaker_failures) :
				 errmsg("lockfence_validate: the lock service answers again")));
}
