/*
 * strmap.h
 *	  Strings to small integers; open addressing, grows, never shrinks.
 */
#ifndef CHECK_STRMAP_H
#define CHECK_STRMAP_H

#include <stddef.h>

typedef struct strmap
{
	struct strmap_slot
	{
		char	   *key;
		int			value;
	}		   *slots;
	size_t		size;			/* a power of two, or 0 */
	size_t		used;
} strmap;

/* The value's address; a new key starts at -1. */
extern int *strmap_at(strmap *map, const char *key);
extern void strmap_free(strmap *map);

#endif
