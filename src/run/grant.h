/*
 * grant.h
 *		See grant.c.
 */
#ifndef RUN_GRANT_H
#define RUN_GRANT_H

extern char *grant_joined(const char *others, const char *resource, const char *token);
extern char *grant_as_option(const char *options, const char *grants);

#endif
