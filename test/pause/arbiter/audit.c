/*
 * audit.c
 *	  Who did what to the service, when and why.
 *
 * Written and synced before the act: what cannot be recorded is not done.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arbiter.h"

static int	fd = -1;

int
audit_start(void)
{
	fd = open(conf.audit_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	return fd < 0 ? -1 : 0;
}

/* Takes over before and after. */
bool
audit(const char *who, const char *action, const char *resource, const char *reason,
	  json_t *before, json_t *after)
{
	char		when[32];
	char		line[2048];
	time_t		now = time(NULL);
	struct tm	tm;
	json_t	   *entry;
	size_t		len;

	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	entry = json_pack("{s:s, s:s, s:s, s:s*, s:s, s:o, s:o}", "when", when, "who", who,
					  "action", action, "resource", resource, "reason", reason,
					  "before", before, "after", after);
	len = entry ? json_dumpb(entry, line, sizeof line - 1, JSON_COMPACT | JSON_PRESERVE_ORDER) : 0;
	json_decref(entry);
	if (len == 0 || len >= sizeof line)
		return false;
	line[len++] = '\n';
	return write(fd, line, len) == (ssize_t) len && fsync(fd) == 0;
}
