/*
 * attempt.h
 *		A call whose error is no error of the caller's.
 */
#ifndef LOCKFENCE_ATTEMPT_H
#define LOCKFENCE_ATTEMPT_H

extern ErrorData *lockfence_attempt(void (*function) (void *arg), void *arg);

#endif							/* LOCKFENCE_ATTEMPT_H */
