/*
 * story.h
 *	  A recorded history, as what a timeline shows.
 */
#ifndef REPORT_STORY_H
#define REPORT_STORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum mark_kind
{
	MARK_ACCEPTED, MARK_REFUSED, MARK_PRESENT, MARK_FENCE, MARK_ENDED, MARK_DENIED, MARK_KINDS
} mark_kind;

typedef struct hold
{
	const char *who;
	const char *lock;
	const char *token;
	int64_t		start;
	int64_t		end;			/* released, or when the next one was granted */
	bool		lapsed;			/* not released: the lease ran out, or it was dropped */
	int64_t		knows;			/* when a lapsed holder learned of it, or 0 */
} hold;

typedef struct mark
{
	mark_kind	kind;
	int64_t		t;
	const char *who;
	const char *lock;
	const char *token;
	const char *code;
} mark;

typedef struct span
{
	const char *what;			/* "stop", "cut", "sealed" */
	const char *who;			/* of a stop */
	const char *why;
	int64_t		start;
	int64_t		end;
} span;

typedef struct moment
{
	const char *what;
	const char *why;
	int64_t		n;
	int64_t		t;
} moment;

typedef struct story
{
	hold	   *holds;
	int			nholds;
	mark	   *marks;
	int			nmarks;
	span	   *spans;
	int			nspans;
	moment	   *moments;
	int			nmoments;
	int64_t		first;
	int64_t		last;
} story;

extern void story_build(story *s, json_t *events);	/* borrows the events' strings */
extern void story_free(story *s);

/* Reads "epoch E, revision R" out of a token; two buffers, in turn. */
extern const char *token_words(const char *token);

#endif
