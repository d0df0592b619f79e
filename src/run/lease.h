/*
 * lease.h
 *		See lease.c.
 */
#ifndef RUN_LEASE_H
#define RUN_LEASE_H

#include <sys/types.h>

#include "keeper.h"

typedef struct Lease
{
	const Options *options;
	char		token[MAX_TOKEN + 1];
	char		name[MAX_NAME + 1];	/* as in Answer */
	Millis		ends;			/* at the earliest */
	Millis		renew_at;
	Millis		answer_by;		/* of a question that was asked; 0: none was */
	bool		failing;		/* the last renewal failed */
	bool		lost;			/* another holder has the resource */
	pid_t		keeper;
	int			fd;				/* a socket to the keeper */
} Lease;

extern void lease_open(Lease *lease, const Options *options);
extern bool lease_acquire(Lease *lease, int *status);
extern Millis lease_keep(Lease *lease);
extern void lease_read(Lease *lease);
extern void lease_release(Lease *lease);
extern void lease_close(Lease *lease);

#endif
