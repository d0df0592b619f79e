/*
 * resource.h
 *		A resource as it is looked up.
 */
#ifndef LOCKFENCE_RESOURCE_H
#define LOCKFENCE_RESOURCE_H

/* A resource of this database as it is looked up: one hash serves lock and cache. */
typedef struct ResourceKey
{
	const char *name;
	uint32		length;			/* of the name */
	uint64		hash;
} ResourceKey;

extern void lockfence_set_resource_key(ResourceKey *key, const char *resource);

#endif							/* LOCKFENCE_RESOURCE_H */
