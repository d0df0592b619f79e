/*
 * message.h
 *		See message.c.
 */
#ifndef RUN_MESSAGE_H
#define RUN_MESSAGE_H

/* Exit statuses, as timeout(1) has them; the command's own are passed on. */
#define STATUS_LOST 124
#define STATUS_FAILED 125
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND 127
#define STATUS_SIGNAL 128		/* plus the number of the signal */

#define PROGRAM "lockfence-run"

extern void complain(const char *format,...) __attribute__((format(printf, 1, 2)));
extern void fail(const char *format,...) __attribute__((format(printf, 1, 2), noreturn));
extern void fail_by_errno(const char *what) __attribute__((noreturn));

#endif
