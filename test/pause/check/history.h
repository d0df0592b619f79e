/*
 * history.h
 *	  A recorded history, as operations grouped by lock.
 *
 * An operation has an interval: it took effect at some moment between its call
 * and its return.  One that never returned may have taken effect at any moment
 * after its call, or never.
 */
#ifndef CHECK_HISTORY_H
#define CHECK_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define NEVER INT64_MAX

typedef enum op_kind
{
	OP_ACQUIRE,					/* was granted */
	OP_RELEASE,					/* was answered: released */
	OP_WRITE,					/* PostgreSQL accepted it */
	OP_REFUSED,					/* PostgreSQL refused it as stale */
	OP_DENIED,					/* the validator said that the lock is not held */
	OP_MAYBE_WRITE				/* its fate is unknown */
} op_kind;

typedef struct op
{
	op_kind		kind;
	int64_t		call;
	int64_t		ret;			/* NEVER: did not return */
	int64_t		token;
	int64_t		n;				/* the row's own write counter, or -1 */
	bool		validated;		/* a write that a validator was asked about */
	int64_t		lapse;			/* OP_ACQUIRE: the hold cannot have ended by
								 * itself before this */
	char	   *who;
	char	   *id;
} op;

typedef struct lock_history
{
	char	   *name;
	op		   *ops;			/* by call time */
	int			nops;
} lock_history;

typedef struct history
{
	lock_history *locks;
	int			nlocks;
	int			nops;
	int			ndropped;		/* operations without effect on any verdict */
	char		problem[256];	/* not empty: the file itself is wrong */
} history;

/* events: a JSON array of the file's lines. */
extern json_t *history_read(const char *path, char *problem, size_t size);
extern void history_build(history *h, json_t *events);
extern void history_free(history *h);

#endif
