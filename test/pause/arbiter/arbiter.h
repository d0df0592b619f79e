/*
 * arbiter.h
 *	  What the files of the arbiter share.
 *
 * The arbiter is a lock service over etcd.  It keeps nothing that matters in its
 * own memory: any number of arbiters may serve one etcd.
 *
 * Keys: /sys/epoch {"epoch","cluster"}; /session/ID and /lock/RESOURCE, both on
 * the session's lease.
 */
#ifndef ARBITER_H
#define ARBITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../common/clock.h"
#include "../common/record.h"
#include "../common/token.h"

#define MAX_RESOURCE 256
#define MAX_IDENTITY 128
#define MAX_ENDPOINTS 9

typedef struct reply
{
	int			status;			/* of HTTP */
	int			retry_after_s;
	json_t	   *body;
} reply;

typedef struct settings
{
	const char *endpoints[MAX_ENDPOINTS];
	int			nendpoints;
	const char *work_socket;	/* unix socket paths, one a lane */
	const char *renew_socket;
	const char *state_path;
	const char *audit_path;
	const char *floor_dsn;		/* PostgreSQL that knows the highest token, or NULL */
	const char *admins[8];
	int			nadmins;
	int			etcd_timeout_ms;	/* of one request */
	int			deadline_ms;	/* of one operation, retries included */
	int			max_acquires;	/* at once; more are shed */
	int			max_wait_ms;
	const char *gate;			/* file: grants wait while it exists, or NULL */
	bool		grants_twice;	/* sabotaged: takes a lock away from its holder */
	bool		never_seals;	/* sabotaged: serves whatever history the cluster has */
	recorder	history;
} settings;

extern settings conf;

/* ---- etcd.c: one request to etcd's gateway ---- */
typedef enum etcd_result
{
	ETCD_OK,
	ETCD_REFUSED,				/* etcd said no: certainly without effect */
	ETCD_UNSENT,				/* certainly without effect */
	ETCD_UNKNOWN				/* may have taken effect, or may yet */
} etcd_result;

extern void etcd_start(void);
extern void etcd_stop(void);
extern etcd_result etcd_call(const char *path, json_t *body, json_t **answer);
/* messages, answers: arrays, one element a message of the stream */
extern etcd_result etcd_stream(const char *path, json_t *messages, json_t **answers);
extern int	etcd_endpoint(void);	/* the one in use, presumably the leader */

/* ---- kv.c: requests and answers as C values ---- */
typedef struct kv
{
	bool		found;
	int64_t		create_revision;
	int64_t		mod_revision;
	int64_t		lease;
	json_t	   *value;			/* an object; free with kv_free */
} kv;

typedef struct txn_answer
{
	bool		succeeded;
	int64_t		revision;
	json_t	   *responses;
	json_t	   *whole;			/* owns responses */
} txn_answer;

extern json_t *txn_new(void);
extern void txn_compare(json_t *txn, const char *key, const char *target,
						const char *field, int64_t value);
extern void txn_range(json_t *txn, bool on_success, const char *key);
extern void txn_put(json_t *txn, const char *key, json_t *value, int64_t lease);
extern void txn_delete(json_t *txn, const char *key, bool prefix);

/* Runs and frees the txn; on ETCD_OK the answer has passed the seal. */
extern etcd_result txn_run(json_t *txn, txn_answer *answer);
extern void txn_free(txn_answer *answer);
extern kv	txn_kv(const txn_answer *answer, int nth);
extern void kv_free(kv *item);
extern int64_t json_int64(json_t *object, const char *key); /* number or string, else 0 */

/* ---- seal.c: has the cluster's history gone back? ---- */
typedef struct epoch_info
{
	int64_t		epoch;
	int64_t		mod_revision;	/* of /sys/epoch */
} epoch_info;

extern void seal_start(void);
extern int64_t seal_revision_floor(void);
extern bool seal_observe(json_t *header, int64_t floor);
extern bool seal_observe_epoch(const kv *item, json_t *header);
extern void seal_now(const char *reason);
extern bool seal_is_sealed(char *reason, size_t size);
extern void seal_open(int64_t epoch, const char *cluster, int64_t revision);
extern int64_t seal_highest_epoch(void);
extern void seal_save(void);

/* ---- sessions.c, locks.c, epoch.c: the operations ---- */
extern reply session_open(const char *identity, json_t *in);
extern reply session_renew(const char *identity, json_t *in);
extern reply lock_acquire(const char *identity, json_t *in);
extern reply lock_release(const char *identity, json_t *in);
extern reply lock_validate(const char *identity, json_t *in);
extern reply lock_describe(const char *identity, json_t *in);
extern reply lock_force_release(const char *identity, json_t *in);
extern reply epoch_advance(const char *identity, json_t *in);
extern int64_t epoch_floor_token(char *problem, size_t size);

/* What is known about one lock, read at one revision. */
typedef struct look
{
	kv			lock;
	kv			session;
	epoch_info	epoch;
} look;

extern etcd_result look_up(const char *resource, int64_t session, look *seen);
extern void look_free(look *seen);

/* renewals.c */
extern etcd_result renew_lease(int64_t lease, int64_t *ttl, int64_t *epoch);
extern bool look_is_ours(const look *seen, const char *identity);

/* ---- reply.c ---- */
extern reply reply_ok(json_t *body);
extern reply reply_error(int status, const char *code, const char *fmt,...);
extern reply reply_for(etcd_result result);	/* for what failed before it had effect */
extern bool input_resource(json_t *in, const char **resource, reply *bad);
extern bool input_id(json_t *in, const char *key, int64_t *id, reply *bad);
extern bool input_reason(json_t *in, const char **reason, reply *bad);
extern bool is_admin(const char *identity);

/* ---- audit.c ---- */
extern int	audit_start(void);
extern bool audit(const char *who, const char *action, const char *resource,
				  const char *reason, json_t *before, json_t *after);

/* ---- stats.c ---- */
typedef enum counter
{
	COUNT_GRANTED, COUNT_HELD, COUNT_AMBIGUOUS, COUNT_AMBIGUOUS_APPLIED,
	COUNT_RENEWED, COUNT_RENEWAL_SHED, COUNT_RENEWAL_GONE, COUNT_RENEWAL_FAILED,
	COUNT_ACQUIRE_SHED, COUNT_RELEASED, COUNT_SEALED_ANSWERS, COUNTERS
} counter;

extern void count(counter which);
extern json_t *stats_json(void);

/* ---- http.c ---- */
extern int	http_start(void);
extern void http_stop(void);

#endif
