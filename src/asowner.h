/*
 * asowner.h
 *		Writing to a table as its owner.
 */
#ifndef LOCKFENCE_ASOWNER_H
#define LOCKFENCE_ASOWNER_H

typedef struct FormerSelf
{
	Oid			user;
	int			context;
	int			level;			/* of settings */
} FormerSelf;

extern FormerSelf lockfence_become(Oid owner, const char *path);
extern void lockfence_come_back(FormerSelf self);

#endif							/* LOCKFENCE_ASOWNER_H */
