/*
 * message.c
 *		What lockfence-run says, on standard error, and its exit statuses.
 */
#include "message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One write per message, so that those of several processes do not mix. */
static void __attribute__((format(printf, 1, 0)))
say(const char *format, va_list args)
{
	char		text[4096];

	vsnprintf(text, sizeof(text), format, args);
	fprintf(stderr, "%s: %s\n", PROGRAM, text);
}

void
complain(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void
fail(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	exit(STATUS_FAILED);
}

void
fail_by_errno(const char *what)
{
	fail("could not %s: %s", what, strerror(errno));
}
