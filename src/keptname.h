/*
 * keptname.h
 *		The name of a resource, as shared memory keeps it.
 */
#ifndef LOCKFENCE_KEPTNAME_H
#define LOCKFENCE_KEPTNAME_H

/* Longest text kept of it. */
#define KEPT_NAME_LEN	256

typedef struct KeptName
{
	int			encoding;		/* of the database that it is from */
	char		text[KEPT_NAME_LEN];
} KeptName;

extern size_t lockfence_set_name(KeptName *kept, const char *name);
extern KeptName lockfence_keep_name(const char *name);
extern Datum lockfence_kept_name(const KeptName *kept);

#endif							/* LOCKFENCE_KEPTNAME_H */
