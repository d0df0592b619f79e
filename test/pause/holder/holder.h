/*
 * holder.h
 *	  A client of the lock service that knows when to stop.
 *
 * A holder is one session with the service: a lease that a thread of the
 * library renews at a third of its time to live.  Every lock it acquires hangs
 * on that session.  With leases of lockfence_lease the lock is the lease: a
 * holder has one at a time, and its acquire has presented the token.
 *
 *	- after the first renewal that fails, lf_holder_check() says STOPPING: finish
 *	  what you do, begin nothing new;
 *	- two thirds of the time to live after the last answered renewal was SENT, or
 *	  at once when the service says the session is gone, the holder is FENCED for
 *	  good: on_fence is called, once, and every check says so.
 *
 * Nothing of this runs while the process is stopped.  So call lf_holder_check()
 * right before each write, and pass the token with the write: only the database
 * can refuse the write of a process that was stopped in between.
 */
#ifndef LF_HOLDER_H
#define LF_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lf_holder lf_holder;

typedef enum lf_state
{
	LF_HOLDING,					/* go on */
	LF_STOPPING,				/* a renewal failed: begin nothing new */
	LF_FENCED					/* stop: another holder may have the lock */
} lf_state;

typedef enum lf_result
{
	LF_OK,
	LF_HELD,					/* another holds it; the bounded wait is over */
	LF_BUSY,					/* the service sheds load; see lf_holder_retry_ms */
	LF_SEALED,					/* the service serves nothing until its epoch advances */
	LF_UNKNOWN,					/* no answer; ask again with the same request */
	LF_GONE,					/* the session is over, or the lock not ours */
	LF_FAILED
} lf_result;

typedef struct lf_options
{
	const char *url;			/* https://host:port, or http:// on loopback */
	const char *ca;				/* PEM files for mutual TLS */
	const char *cert;
	const char *key;
	const char *unix_socket;	/* instead of TCP, or NULL */
	const char *lease_dsn;		/* instead of url: leases of lockfence_lease, in that database */
	const char *owner;			/* of the leases; a name that no other holder has */
	int			ttl_s;
	int			open_wait_ms;	/* how long lf_holder_open() tries; 0: 10 s */
	void		(*on_fence) (void *arg, const char *why);	/* mandatory */
	void	   *arg;
	/* Optional: told about each session or renewal answered, for a history.  It
	 * must not call the library. */
	void		(*on_lease) (void *arg, const char *what, const char *session,
							 int64_t sent_us, int64_t ttl_us);
} lf_options;

/* Opens a session and starts renewing it.  NULL: message says why. */
extern lf_holder *lf_holder_open(const lf_options *options, char *message, size_t size);
extern void lf_holder_close(lf_holder *h);

/*
 * One attempt to acquire.  request names the attempt: asked again under the same
 * name, a grant whose answer was lost is found and not made twice.
 */
extern lf_result lf_holder_try(lf_holder *h, const char *resource, const char *request,
							   int wait_ms, int64_t *token);

/* Tries, with back-off, until granted or until wait_ms have passed. */
extern lf_result lf_holder_acquire(lf_holder *h, const char *resource, int wait_ms,
								   int64_t *token);
extern lf_result lf_holder_release(lf_holder *h, const char *resource, int64_t token);

/* Never blocks on the network; fires on_fence itself if the deadline passed. */
extern lf_state lf_holder_check(lf_holder *h);

extern const char *lf_holder_session(const lf_holder *h);
extern const char *lf_holder_message(const lf_holder *h);	/* of the last failure */
extern int	lf_holder_renewals_shed(const lf_holder *h);	/* told to come again later */
extern int	lf_holder_renewals_failed(const lf_holder *h);	/* for whatever reason */

/* Milliseconds until the next attempt: full jitter, doubling, and never past the
 * next renewal, so that a holder's attempts are never its reason to be late. */
extern int	lf_holder_retry_ms(lf_holder *h, int attempt);

#endif
