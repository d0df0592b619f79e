/*
 * events.h
 *		What the server tells, and the files that want to know.
 */
#ifndef LOCKFENCE_EVENTS_H
#define LOCKFENCE_EVENTS_H

extern void lockfence_events_init(void);

#endif							/* LOCKFENCE_EVENTS_H */
