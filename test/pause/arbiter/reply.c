/*
 * reply.c
 *	  Answers, and the checks of what was asked.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arbiter.h"

reply
reply_ok(json_t *body)
{
	return (reply) {200, 0, body};
}

reply
reply_error(int status, const char *code, const char *fmt,...)
{
	char		text[400];
	va_list		ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return (reply) {status, 0, json_pack("{s:{s:s, s:s}}", "error", "code", code,
										 "message", text)};
}

reply
reply_for(etcd_result result)
{
	reply		r;

	if (result == ETCD_UNKNOWN)
		return reply_error(504, "ambiguous", "etcd did not answer: it may have been done; ask again");
	r = reply_error(503, "unavailable", "etcd cannot be reached");
	r.retry_after_s = 1;
	return r;
}

bool
input_resource(json_t *in, const char **resource, reply *bad)
{
	const char *name = json_string_value(json_object_get(in, "resource"));
	size_t		len = name ? strlen(name) : 0;
	bool		good = len > 0 && len <= MAX_RESOURCE;

	for (size_t i = 0; i < len; i++)
		if ((unsigned char) name[i] < 0x20 || name[i] == 0x7f)
			good = false;
	*resource = name;
	if (!good)
		*bad = reply_error(400, "bad_resource",
						   "resource must be 1 to %d bytes without control characters", MAX_RESOURCE);
	return good;
}

/* Sessions and tokens are strings: a double loses their digits. */
bool
input_id(json_t *in, const char *key, int64_t *id, reply *bad)
{
	if (token_parse(json_string_value(json_object_get(in, key)), id) && *id > 0)
		return true;
	*bad = reply_error(400, "bad_number", "%s must be a string of decimal digits, above 0", key);
	return false;
}

bool
input_reason(json_t *in, const char **reason, reply *bad)
{
	*reason = json_string_value(json_object_get(in, "reason"));
	if (*reason && **reason)
		return true;
	*bad = reply_error(400, "no_reason", "say why: the reason is written to the audit log");
	return false;
}

bool
is_admin(const char *identity)
{
	for (int i = 0; i < conf.nadmins; i++)
		if (strcmp(identity, conf.admins[i]) == 0)
			return true;
	return false;
}
