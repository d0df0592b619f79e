/*
 * wait.c
 *		Waiting for the service: by which clock, and what it is called.
 */
#include "postgres.h"

#include "portability/instr_time.h"

#include "compat.h"
#include "wait.h"

/* Microseconds on a clock that never goes back. */
uint64
lockfence_now_us(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (uint64) INSTR_TIME_GET_MICROSEC(now);
}

/* The wait event in pg_stat_activity. */
uint32
lockfence_wait_event(void)
{
	static uint32 event = 0;

	if (event == 0)
		event = LOCKFENCE_NEW_WAIT_EVENT("LockfenceValidate");
	return event;
}
