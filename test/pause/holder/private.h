/*
 * private.h
 *	  What the files of the holder library share.
 */
#ifndef LF_HOLDER_PRIVATE_H
#define LF_HOLDER_PRIVATE_H

#include <pthread.h>

#include "holder.h"

#define NEVER INT64_MAX

/*
 * What the library asks a lock service.  Each call is one attempt; it leaves the
 * reason of a failure in the holder's message.
 */
typedef struct lf_service
{
	void	   *(*connect) (const lf_options *options);
	void		(*close) (lf_holder *h);
	lf_result	(*open) (lf_holder *h, long timeout_ms);
	lf_result	(*acquire) (lf_holder *h, const char *resource, const char *request, int wait_ms,
							int64_t *token);
	lf_result	(*renew) (lf_holder *h, long timeout_ms, int64_t *sent);
	lf_result	(*release) (lf_holder *h, const char *resource, int64_t token);
} lf_service;

extern const lf_service lf_http;	/* http.c */
extern const lf_service lf_leases;	/* lease.c */

struct lf_holder
{
	lf_options	options;
	const lf_service *service;
	void	   *link;			/* the service's connections */
	char		session[64];
	int64_t		ttl_us;
	pthread_t	thread;
	pthread_mutex_t mutex;		/* protects what follows */
	pthread_cond_t wake;
	lf_state	state;
	int64_t		deadline;		/* when it becomes fenced by itself */
	int64_t		next_renewal;
	int			lease;			/* counts them: a late answer may be about the one before */
	int			renewals_shed;
	int			renewals_failed;
	bool		closing;
	int			retry_after_ms; /* what the service last asked for, or 0 */
	char		message[200];
	unsigned	seed;			/* of the jitter */
};

/* renew.c */
extern int	lf_renewal_start(lf_holder *h);
extern void lf_renewal_stop(lf_holder *h);
extern void lf_fence(lf_holder *h, const char *why);
/* What is renewed from now on, by when it was asked for; no more, from when its
 * release is asked for; and that there is none. */
extern void lf_lease_begins(lf_holder *h, const char *session, int64_t ttl_us, int64_t sent);
extern void lf_lease_is_released(lf_holder *h);
extern void lf_lease_ends(lf_holder *h);

#endif
