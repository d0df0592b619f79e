/*
 * present.h
 *	  A holder's first act: present the token to PostgreSQL and commit.
 *
 * From then on every older token of the resource is refused, whether or not the
 * new holder has written yet.
 */
#ifndef LF_PRESENT_H
#define LF_PRESENT_H

#include <libpq-fe.h>
#include <stdint.h>

/* The SQLSTATE, "00000" when presented; conn must be outside a transaction. */
extern const char *lf_present(PGconn *conn, const char *resource, int64_t token,
							  char sqlstate[6]);

#endif
