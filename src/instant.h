/*
 * instant.h
 *		Instants, as callers give them.
 */
#ifndef LOCKFENCE_INSTANT_H
#define LOCKFENCE_INSTANT_H

#include "datatype/timestamp.h"

extern TimestampTz lockfence_limit_at(TimestampTz instant);
extern bool lockfence_read_instant(const char *text, TimestampTz *instant);

#endif							/* LOCKFENCE_INSTANT_H */
