/*
 * resource.c
 *		A resource as it is looked up: by one hash, which serves lock, cache and
 *		index.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"

#include "resource.h"

/* What a resource is looked up by, wherever that is. */
void
lockfence_set_resource_key(ResourceKey *key, const char *resource)
{
	key->name = resource;
	key->length = strlen(resource);
	key->hash = hash_bytes_extended((const unsigned char *) resource,
									key->length, MyDatabaseId);
}
