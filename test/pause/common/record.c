/*
 * record.c
 *	  Appends events to a history.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "record.h"

/* path NULL: a recorder that records nothing. */
int
recorder_open(recorder *rec, const char *path, const char *who)
{
	snprintf(rec->who, sizeof rec->who, "%s", who);
	rec->fd = -1;
	if (path == NULL)
		return 0;
	rec->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	return rec->fd < 0 ? -1 : 0;
}

static void
write_line(int fd, json_t *event)
{
	char		line[4096];
	size_t		len = json_dumpb(event, line, sizeof line - 1,
								 JSON_COMPACT | JSON_PRESERVE_ORDER);

	if (len == 0 || len >= sizeof line)
		return;
	line[len++] = '\n';
	if (write(fd, line, len) != (ssize_t) len)
		perror("history");
}

int64_t
record(recorder *rec, const char *what, const char *phase, const char *fmt,...)
{
	int64_t		now = clock_us();
	json_t	   *event;
	json_t	   *more = NULL;

	if (rec == NULL || rec->fd < 0)
		return now;
	event = json_pack("{s:I, s:s, s:s, s:s}", "t", (json_int_t) now,
					  "who", rec->who, "what", what, "phase", phase);
	if (fmt != NULL)
	{
		va_list		ap;

		va_start(ap, fmt);
		more = json_vpack_ex(NULL, 0, fmt, ap);
		va_end(ap);
		json_object_update(event, more);
		json_decref(more);
	}
	write_line(rec->fd, event);
	json_decref(event);
	return now;
}
