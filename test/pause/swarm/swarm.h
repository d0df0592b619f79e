/*
 * swarm.h
 *	  What the files of the swarm share: many holders in one process.
 */
#ifndef SWARM_H
#define SWARM_H

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../common/clock.h"
#include "../common/record.h"
#include "../common/token.h"
#include "../holder/holder.h"

typedef struct swarm
{
	const char *url;
	const char *certs;			/* directory: ca.pem, client-N.pem, client-N.key */
	const char *dsn;
	const char *locks;			/* client N takes LOCKS-N */
	const char *generation;		/* tells the clients of two swarms apart */
	int			ttl_s;
	recorder	history;
	PGconn	   *conn;			/* shared: a write is a moment, a hold is long */
	pthread_mutex_t conn_mutex;
	atomic_bool over;
	atomic_int	renewals_shed;
	atomic_int	renewals_failed;
	atomic_int	fenced;
} swarm;

typedef struct client
{
	swarm	   *swarm;
	int			number;
	recorder	history;
	char		ca[256];
	char		cert[256];
	char		key[256];
	char		lock[64];
	unsigned	seed;
} client;

extern void client_init(client *c, swarm *s, int number);
extern void *client_run(void *arg);

#endif
