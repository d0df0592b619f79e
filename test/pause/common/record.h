/*
 * record.h
 *	  Appends events to a history: one JSON object a line.
 *
 * docs/pause-kit.md describes the fields.  Many processes write the same file;
 * a line is one write() to a descriptor in append mode, so lines never mix.
 */
#ifndef PAUSE_RECORD_H
#define PAUSE_RECORD_H

#include <jansson.h>

typedef struct recorder
{
	int			fd;				/* -1: records nothing */
	char		who[64];
} recorder;

extern int	recorder_open(recorder *rec, const char *path, const char *who);

/*
 * The event's remaining fields as a json_pack format and its arguments, for
 * example "s:s, s:o?".  Returns the time it was given, in microseconds.
 */
extern int64_t record(recorder *rec, const char *what, const char *phase,
					  const char *fmt,...);

#endif
