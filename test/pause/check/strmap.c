/*
 * strmap.c
 *	  Strings to small integers.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "strmap.h"

static uint64_t
hash_string(const char *s)
{
	uint64_t	h = UINT64_C(0xcbf29ce484222325);

	for (; *s; s++)
		h = (h ^ (unsigned char) *s) * UINT64_C(0x100000001b3);
	return h ^ (h >> 29);
}

static struct strmap_slot *
find_slot(strmap *map, const char *key)
{
	size_t		i = hash_string(key) & (map->size - 1);

	while (map->slots[i].key && strcmp(map->slots[i].key, key) != 0)
		i = (i + 1) & (map->size - 1);
	return &map->slots[i];
}

static void
grow(strmap *map)
{
	strmap		bigger = {NULL, map->size ? map->size * 2 : 256, map->used};

	bigger.slots = calloc(bigger.size, sizeof *bigger.slots);
	for (size_t i = 0; i < map->size; i++)
		if (map->slots[i].key)
			*find_slot(&bigger, map->slots[i].key) = map->slots[i];
	free(map->slots);
	*map = bigger;
}

int *
strmap_at(strmap *map, const char *key)
{
	struct strmap_slot *slot;

	if (map->used * 2 >= map->size)
		grow(map);
	slot = find_slot(map, key);
	if (slot->key == NULL)
	{
		slot->key = strdup(key);
		slot->value = -1;
		map->used++;
	}
	return &slot->value;
}

void
strmap_free(strmap *map)
{
	for (size_t i = 0; i < map->size; i++)
		free(map->slots[i].key);
	free(map->slots);
	memset(map, 0, sizeof *map);
}
