/*
 * wait.h
 *		Waiting for the service.
 */
#ifndef LOCKFENCE_VALIDATE_WAIT_H
#define LOCKFENCE_VALIDATE_WAIT_H

extern uint64 lockfence_now_us(void);
extern uint32 lockfence_wait_event(void);

#endif							/* LOCKFENCE_VALIDATE_WAIT_H */
