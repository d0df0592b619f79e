/*
 * kv.c
 *	  etcd's requests and answers as C values.
 *
 * The gateway writes int64 as a string, omits what is zero (a failed txn has no
 * "succeeded", a missing key no "kvs"), and takes keys and values in base64.
 * Comparisons name their enum values in words: 3.5 accepts unknown ones silently.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arbiter.h"

static const char alphabet[] =
"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static json_t *
base64(const char *text)
{
	size_t		len = strlen(text);
	char		out[4096];
	size_t		n = 0;

	for (size_t i = 0; i < len && n + 5 < sizeof out; i += 3)
	{
		uint32_t	bits = (unsigned char) text[i] << 16;

		if (i + 1 < len)
			bits |= (unsigned char) text[i + 1] << 8;
		if (i + 2 < len)
			bits |= (unsigned char) text[i + 2];
		out[n++] = alphabet[bits >> 18 & 63];
		out[n++] = alphabet[bits >> 12 & 63];
		out[n++] = i + 1 < len ? alphabet[bits >> 6 & 63] : '=';
		out[n++] = i + 2 < len ? alphabet[bits & 63] : '=';
	}
	return json_stringn(out, n);
}

static json_t *
unbase64_json(const char *text)
{
	char		out[4096];
	size_t		n = 0;
	uint32_t	bits = 0;
	int			have = 0;

	for (; text && *text && *text != '=' && n < sizeof out; text++)
	{
		const char *at = strchr(alphabet, *text);

		if (at == NULL)
			break;
		bits = bits << 6 | (uint32_t) (at - alphabet);
		have += 6;
		if (have >= 8)
			out[n++] = (char) (bits >> (have -= 8));
	}
	return json_loadb(out, n, 0, NULL);
}

int64_t
json_int64(json_t *object, const char *key)
{
	json_t	   *v = json_object_get(object, key);
	int64_t		n = 0;

	if (json_is_integer(v))
		return json_integer_value(v);
	token_parse(json_string_value(v), &n);
	return n;
}

static json_t *
int64_text(int64_t n)
{
	char		text[32];

	snprintf(text, sizeof text, "%" PRId64, n);
	return json_string(text);
}

json_t *
txn_new(void)
{
	return json_pack("{s:[], s:[], s:[]}", "compare", "success", "failure");
}

void
txn_compare(json_t *txn, const char *key, const char *target, const char *field, int64_t value)
{
	json_array_append_new(json_object_get(txn, "compare"),
						  json_pack("{s:o, s:s, s:s, s:o}", "key", base64(key), "result", "EQUAL",
									"target", target, field, int64_text(value)));
}

void
txn_range(json_t *txn, bool on_success, const char *key)
{
	json_array_append_new(json_object_get(txn, on_success ? "success" : "failure"),
						  json_pack("{s:{s:o}}", "request_range", "key", base64(key)));
}

void
txn_put(json_t *txn, const char *key, json_t *value, int64_t lease)
{
	char	   *text = json_dumps(value, JSON_COMPACT);
	json_t	   *put = json_pack("{s:o, s:o, s:o}", "key", base64(key), "value", base64(text),
								"lease", int64_text(lease));

	free(text);
	json_decref(value);
	json_array_append_new(json_object_get(txn, "success"),
						  json_pack("{s:o}", "request_put", put));
}

void
txn_delete(json_t *txn, const char *key, bool prefix)
{
	json_t	   *del = json_pack("{s:o}", "key", base64(key));

	if (prefix)
	{
		char		end[MAX_RESOURCE + 16];
		size_t		len = strlen(key);

		memcpy(end, key, len + 1);
		end[len - 1]++;			/* the prefixes end in '/' */
		json_object_set_new(del, "range_end", base64(end));
	}
	json_array_append_new(json_object_get(txn, "success"),
						  json_pack("{s:o}", "request_delete_range", del));
}

etcd_result
txn_run(json_t *txn, txn_answer *answer)
{
	int64_t		floor = seal_revision_floor();
	etcd_result result;

	memset(answer, 0, sizeof *answer);
	result = etcd_call("/v3/kv/txn", txn, &answer->whole);
	json_decref(txn);
	if (result != ETCD_OK)
		return result;
	answer->succeeded = json_is_true(json_object_get(answer->whole, "succeeded"));
	answer->responses = json_object_get(answer->whole, "responses");
	answer->revision = json_int64(json_object_get(answer->whole, "header"), "revision");
	seal_observe(json_object_get(answer->whole, "header"), floor);
	return ETCD_OK;
}

void
txn_free(txn_answer *answer)
{
	json_decref(answer->whole);
	memset(answer, 0, sizeof *answer);
}

kv
txn_kv(const txn_answer *answer, int nth)
{
	json_t	   *range = json_object_get(json_array_get(answer->responses, nth), "response_range");
	json_t	   *item = json_array_get(json_object_get(range, "kvs"), 0);
	kv			found = {.found = item != NULL};

	if (item == NULL)
		return found;
	found.create_revision = json_int64(item, "create_revision");
	found.mod_revision = json_int64(item, "mod_revision");
	found.lease = json_int64(item, "lease");
	found.value = unbase64_json(json_string_value(json_object_get(item, "value")));
	return found;
}

void
kv_free(kv *item)
{
	json_decref(item->value);
	item->value = NULL;
}
