/*
 * settings.h
 *		Settings that more than one file reads.
 */
#ifndef LOCKFENCE_SETTINGS_H
#define LOCKFENCE_SETTINGS_H

typedef enum LockfenceUnknown
{
	LOCKFENCE_UNKNOWN_IGNORE,
	LOCKFENCE_UNKNOWN_NOTICE,
	LOCKFENCE_UNKNOWN_WARNING
} LockfenceUnknown;

typedef enum LockfenceEnforcement
{
	LOCKFENCE_ENFORCE_DECLARED, /* as each fence declares it */
	LOCKFENCE_ENFORCE_NONE		/* all are advisory */
} LockfenceEnforcement;

extern int	lockfence_enforcement;
extern bool lockfence_bypass;
extern bool lockfence_preempt;
extern bool lockfence_limit_leases;
extern int	lockfence_max_resource_locks;
extern int	lockfence_unknown_resource;

extern void lockfence_settings_init(void);

#endif							/* LOCKFENCE_SETTINGS_H */
