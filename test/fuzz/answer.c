/*
 * answer.c
 *		Fuzzes the reading of the lock service's answers, which are not trusted.
 *
 * An input is "TOKEN RESOURCE", a line feed, and the body of an answer to a
 * question about these.
 */
#define _GNU_SOURCE
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/answer.h"

static long allocated = 0;

static void
require(int holds, const char *property)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz: a property does not hold\nfuzz: %s\n", property);
	abort();
}

static void *
count_malloc(size_t size)
{
	allocated++;
	return malloc(size);
}

static void
count_free(void *p)
{
	allocated -= p != NULL;
	free(p);
}

/* The question's own members, with valid ones besides, are the answer that it wants. */
static void
check_question(const Question *question)
{
	char		text[MAX_QUESTION];
	char		body[MAX_QUESTION + 100];
	size_t		len = lockfence_question_write(question, text, sizeof(text));
	Answer		answer = {0};
	int			n;

	require(len <= sizeof(text), "a question is longer than its buffer");
	if (len == 0)
		return;
	require(text[0] == '{' && text[len - 1] == '}', "a question is no object");
	n = snprintf(body, sizeof(body), "{\"valid\": true, \"epoch\": 7, \"expires_in_ms\": 1500, ");
	memcpy(body + n, text + 1, len - 1);
	require(lockfence_answer_parse(body, n + len - 1, question, &answer) == NULL, "the right answer is refused");
	require(answer.valid && answer.epoch == 7 && answer.expires_in_ms == 1500, "an answer is taken for another one");
}

/* What is accepted is about this question, and within bounds. */
static void
check_answer(const char *body, size_t len, const Question *question)
{
	Answer		answer = {0};
	Answer		other = {0};
	Question	other_token = *question;
	Question	other_resource = *question;

	if (lockfence_answer_parse(body, len, question, &answer) != NULL)
		return;
	require(answer.epoch >= 0 && answer.epoch <= 32767 && answer.expires_in_ms >= 0 &&
			answer.expires_in_ms <= INT64_MAX / 1000, "an answer is out of range");
	other_token.token ^= 1;
	require(lockfence_answer_parse(body, len, &other_token, &other) != NULL, "an answer about one token does for another");
	other_resource.resource = "no such resource";
	other_resource.resource_len = strlen(other_resource.resource);
	require(lockfence_answer_parse(body, len, &other_resource, &other) != NULL ||
			memmem(body, len, "no such resource", 16) != NULL, "an answer about one resource does for another");
}

/* A code is a short word, or none. */
static void
check_code(const char *body, size_t len)
{
	char		buffer[16];
	const char *code = lockfence_answer_code(body, len, buffer, sizeof(buffer));

	if (code == NULL)
		return;
	require(strlen(code) > 0 && strlen(code) < sizeof(buffer), "a code does not fit");
	require(strspn(code, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == strlen(code), "a code is no word");
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void) argc;
	(void) argv;
	json_set_alloc_funcs(count_malloc, count_free);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *input = (const char *) data;
	const char *space = memchr(input, ' ', size);
	const char *line = memchr(input, '\n', size);
	char		token[24] = "";
	char	   *body;
	size_t		body_len;
	Question	question;

	if (space == NULL || line == NULL || line < space || (size_t) (space - input) >= sizeof(token))
		return -1;
	memcpy(token, input, space - input);
	question.token = strtoll(token, NULL, 10);
	question.resource = space + 1;
	question.resource_len = line - space - 1;
	/* no text of PostgreSQL's has a zero byte, and no resource is that long */
	if (question.resource_len > 1024 || memchr(question.resource, 0, question.resource_len) != NULL)
		return -1;

	/* a copy of its own, so that reading past its end shows */
	body_len = size - (line + 1 - input);
	body = malloc(body_len);
	memcpy(body, line + 1, body_len);
	check_question(&question);
	check_answer(body, body_len, &question);
	check_code(body, body_len);
	free(body);
	require(allocated == 0, "memory is not given back");
	return 0;
}
