/*
 * missing.h
 *		Which commands a fence lets pass without a token.
 */
#ifndef LOCKFENCE_MISSING_H
#define LOCKFENCE_MISSING_H

/* One command of a write, or a set of them. */
typedef int WriteCommand;

#define WRITE_INSERT	0x01
#define WRITE_UPDATE	0x02
#define WRITE_DELETE	0x04
#define WRITE_TRUNCATE	0x08

#define MISSING_REJECT	"reject"
#define MISSING_ALLOW	"allow"

extern bool lockfence_read_missing(const char *text, WriteCommand *commands);
extern const char *lockfence_missing_text(const char *text);

#endif							/* LOCKFENCE_MISSING_H */
