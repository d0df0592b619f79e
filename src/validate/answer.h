/*
 * answer.h
 *		The question to the lock service and its answer, as JSON.
 */
#ifndef LOCKFENCE_ANSWER_H
#define LOCKFENCE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest question, whose resource may be all escapes, and longest answer. */
#define MAX_QUESTION 8192
#define MAX_ANSWER 16384

typedef struct Question
{
	const char *resource;		/* UTF-8 */
	size_t		resource_len;
	int64_t		token;
} Question;

typedef struct Answer
{
	bool		valid;
	int			epoch;
	int64_t		expires_in_ms;
} Answer;

extern size_t lockfence_question_write(const Question *question, char *buffer, size_t size);
extern const char *lockfence_answer_parse(const char *body, size_t len,
										  const Question *question, Answer *answer);
extern const char *lockfence_answer_code(const char *body, size_t len,
										 char *buffer, size_t size);

#endif							/* LOCKFENCE_ANSWER_H */
