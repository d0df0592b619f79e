/*
 * private.h
 *	  What the rooms of the holder library share.
 */
#ifndef LF_HOLDER_PRIVATE_H
#define LF_HOLDER_PRIVATE_H

#include <pthread.h>

#include "../common/fetch.h"
#include "holder.h"

struct lf_holder
{
	lf_options	options;
	char		session[32];
	int64_t		ttl_us;
	fetch	   *asking;			/* its connection is the renewal's too, while it is idle: */
	pthread_mutex_t asking_mutex;	/* a handshake costs more than a renewal */
	fetch	   *renewing;		/* for when it is not */
	pthread_t	thread;
	pthread_mutex_t mutex;		/* protects what follows */
	pthread_cond_t wake;
	lf_state	state;
	int64_t		deadline;		/* when it becomes fenced by itself */
	int64_t		next_renewal;
	int			renewals_shed;
	int			renewals_failed;
	bool		closing;
	int			retry_after_ms; /* what the service last asked for, or 0 */
	char		message[200];
	unsigned	seed;			/* of the jitter */
};

/* The service's answer to path, with what the status means. */
extern lf_result lf_ask_with(lf_holder *h, fetch *f, const char *path, json_t *body,
							 long timeout_ms, json_t **answer, int64_t *sent);

/* renew.c */
extern int	lf_renewal_start(lf_holder *h);
extern void lf_renewal_stop(lf_holder *h);
extern void lf_fence(lf_holder *h, const char *why);

#endif
