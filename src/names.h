/*
 * names.h
 *		Which names the fences can make.
 */
#ifndef LOCKFENCE_NAMES_H
#define LOCKFENCE_NAMES_H

extern void lockfence_tell_unknown(const char *name);
extern void lockfence_require_no_row(const char *name);
extern void lockfence_read_declared(void);
extern bool lockfence_names_by_column(Oid relid, const char *column);

#endif							/* LOCKFENCE_NAMES_H */
