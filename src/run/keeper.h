/*
 * keeper.h
 *		See keeper.c.
 */
#ifndef RUN_KEEPER_H
#define RUN_KEEPER_H

#include "options.h"

#define MAX_NAME 1024			/* bytes of a resource's name */
#define MAX_TOKEN 20			/* digits */

typedef enum Request
{
	ASK_ACQUIRE,
	ASK_RENEW,
	ASK_RELEASE
} Request;

typedef struct Question
{
	Request		request;
	Millis		wait;			/* of ASK_ACQUIRE */
	char		token[MAX_TOKEN + 1];	/* of the others */
} Question;

typedef enum Outcome
{
	OUTCOME_DONE,
	OUTCOME_DECLINED,			/* another holder has the lease */
	OUTCOME_FAILED				/* the message says why; it may be tried again */
} Outcome;

typedef struct Answer
{
	Outcome		outcome;
	Millis		asked_at;		/* before the server was asked */
	char		token[MAX_TOKEN + 1];	/* of ASK_ACQUIRE */
	char		name[MAX_NAME + 1]; /* the resource, in the encoding of the database */
	char		sqlstate[6];
	char		message[1024];
} Answer;

extern void keeper_serve(int fd, const Options *options) __attribute__((noreturn));

#endif
