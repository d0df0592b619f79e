/*
 * writer.h
 *	  What the files of the writer share.
 *
 * The writer is the application of the proofs: it holds a lock, reads, thinks,
 * and writes to PostgreSQL with its token.  Whatever it does, it records.
 */
#ifndef WRITER_H
#define WRITER_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "../common/clock.h"
#include "../common/record.h"
#include "../common/token.h"
#include "../holder/holder.h"

typedef struct writer
{
	lf_options	options;
	lf_holder  *holder;			/* NULL: the token was given by another client */
	recorder	history;
	const char *resource;
	int64_t		token;
	bool		leases;			/* of PostgreSQL: the acquire presents the token */
	const char *dsn;
	PGconn	   *conn;
	const char *account;		/* the kit's own table */
	bool		validated;		/* its fence asks the lock service */
	const char *table;			/* a resource owner's own, or NULL */
	const char *row;			/* its key, a JSON object */
	const char *change;			/* what a write sets there, a JSON object */
	const char *scenario;
	const char *gate;			/* file: go on once it exists */
	int			wait_s;			/* for the lock */
	int			seconds;		/* how long a loop goes on */
	const char *stop_file;		/* a loop ends once it exists */
	int			nlocks;			/* a loop takes resource-1 .. resource-N in turn */
	unsigned	seed;
} writer;

/* What became of a write. */
typedef enum fate
{
	ACCEPTED, REFUSED_STALE, NOT_DONE, NOBODY_KNOWS
} fate;

/* db.c */
extern bool db_connect(writer *w);
extern bool db_run(writer *w, const char *sql);
extern fate db_present(writer *w);
extern bool db_present_open(writer *w);
extern bool db_read(writer *w);
extern fate db_write(writer *w, bool in_transaction);

/* lock.c */
extern bool lock_open(writer *w);
extern bool lock_take(writer *w, int wait_s);
extern bool lock_give_back(writer *w);

/* scenario.c */
extern int	run_scenario(writer *w);

#endif
