/*
 * answer.c
 *		The question to the lock service and its answer, as JSON.
 *
 * This file does not use PostgreSQL, so that it can be tested and fuzzed alone;
 * that is why it returns a problem as a text instead of raising an error.
 *
 * A number is never read as floating point, which would lose the last digits of
 * a token: the parser refuses an integer that does not fit in 64 bits.
 *
 * json_object() must not be called: PostgreSQL has a function of that name, and
 * the program's functions take precedence over a library's.
 */
#include "answer.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define MAX_EPOCH 32767

/* Capacity for the digits of a token. */
#define TOKEN_LEN 24

/*
 * Write the question, without a terminating zero.  Returns its length, or 0 if
 * the resource is not UTF-8 or does not fit.
 */
size_t
lockfence_question_write(const Question *question, char *buffer, size_t size)
{
	char		token[TOKEN_LEN];
	json_t	   *root;
	size_t		len;

	snprintf(token, sizeof(token), "%" PRId64, question->token);
	root = json_pack("{s:s%, s:s}", "resource", question->resource, question->resource_len,
					 "token", token);
	if (root == NULL)
		return 0;
	len = json_dumpb(root, buffer, size, JSON_COMPACT);
	json_decref(root);
	return len <= size ? len : 0;
}

/* Is it the resource that was asked about? */
static bool
echoes_resource(const json_t *value, const Question *question)
{
	return json_is_string(value) &&
		json_string_length(value) == question->resource_len &&
		memcmp(json_string_value(value), question->resource, question->resource_len) == 0;
}

/* Is it the token that was asked about, as a string or as an integer? */
static bool
echoes_token(const json_t *value, const Question *question)
{
	char		token[TOKEN_LEN];

	if (json_is_integer(value))
		return json_integer_value(value) == question->token;
	snprintf(token, sizeof(token), "%" PRId64, question->token);
	return json_is_string(value) &&
		json_string_length(value) == strlen(token) &&
		strcmp(json_string_value(value), token) == 0;
}

/* Is it an integer from 0 to the highest allowed? */
static bool
is_count(const json_t *value, int64_t max)
{
	return json_is_integer(value) && json_integer_value(value) >= 0 &&
		json_integer_value(value) <= max;
}

/* Read the members of the answer.  Returns what is wrong, or NULL. */
static const char *
read_members(const json_t *root, const Question *question, Answer *answer)
{
	const json_t *valid = json_object_get(root, "valid");
	const json_t *epoch = json_object_get(root, "epoch");
	const json_t *expires = json_object_get(root, "expires_in_ms");

	if (!echoes_resource(json_object_get(root, "resource"), question))
		return "\"resource\" is not the resource that was asked about";
	if (!echoes_token(json_object_get(root, "token"), question))
		return "\"token\" is not the token that was asked about";
	if (!json_is_boolean(valid))
		return "\"valid\" is neither true nor false";
	if (!is_count(epoch, MAX_EPOCH))
		return "\"epoch\" is not an integer from 0 to 32767";
	/* microseconds have to fit as well */
	if (!is_count(expires, INT64_MAX / 1000))
		return "\"expires_in_ms\" is not an integer from 0 on";
	answer->valid = json_is_true(valid);
	answer->epoch = (int) json_integer_value(epoch);
	answer->expires_in_ms = json_integer_value(expires);
	return NULL;
}

/* Read the answer to a question.  Returns what is wrong with it, or NULL. */
const char *
lockfence_answer_parse(const char *body, size_t len, const Question *question, Answer *answer)
{
	json_error_t error;
	json_t	   *root = json_loadb(body, len, JSON_REJECT_DUPLICATES, &error);
	const char *problem;

	if (root == NULL)
		return "it is not JSON";
	problem = json_is_object(root) ? read_members(root, question, answer) :
		"it is not a JSON object";
	json_decref(root);
	return problem;
}

/* Is it a plain word?  No other text of the service goes into messages. */
static bool
is_word(const char *text, size_t size)
{
	size_t		len = strlen(text);

	return len > 0 && len < size &&
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == len;
}

/*
 * The code of an error, {"error": {"code": ...}}, copied to the buffer; NULL if
 * the body has none.
 */
const char *
lockfence_answer_code(const char *body, size_t len, char *buffer, size_t size)
{
	json_error_t error;
	json_t	   *root = json_loadb(body, len, JSON_REJECT_DUPLICATES, &error);
	const char *code = json_string_value(json_object_get(json_object_get(root, "error"), "code"));
	bool		known = code != NULL && is_word(code, size);

	if (known)
		strcpy(buffer, code);
	json_decref(root);
	return known ? buffer : NULL;
}
