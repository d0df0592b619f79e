/*
 * cache.c
 *		Committed marks in shared memory, so that the equal path reads no index.
 *
 * Why a hit may be trusted.  An entry is put by a transaction that holds the
 * resource's lock in hold mode and has seen, under it, that the mark is
 * committed and that nobody is changing it.  It is dropped by whoever changes
 * the mark, under the lock in advance mode, before the first byte is written;
 * the two modes conflict.  So a transaction that finds an entry while it has
 * the lock in hold mode knows that no change came after the entry was put and
 * that none can come before its own end.  An entry that is found without the
 * lock is only a reason to take it.
 *
 * Marks are changed by mark.c alone.  DML goes there too, through the
 * trigger of the table of marks, and while that trigger is not sure to fire
 * nothing is put.  Any invalidation of the table empties the cache by
 * raising its generation; each check accepts invalidations before it looks, and
 * an entry bears the generation from before its mark was read.
 *
 * A database and its table of marks are known by their OIDs, and both can come
 * again: CREATE DATABASE may be told the OID, and copies all others.  So a new
 * database empties the cache, before anybody can connect to it.
 *
 * Locking.  Entries stand in sets, each with a spinlock for its writers and a
 * version that is odd while one is at work; readers take no lock and look again
 * at the version instead.  A name that is longer than an entry holds is not
 * cached.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/spin.h"

#include "lockfence.h"

#define SET_SIZE		4
#define MAX_CACHED_LEN	88
#define DEFAULT_MAX_CACHED 16384

typedef struct CacheEntry
{
	uint64		generation;		/* 0: free */
	uint64		hash;
	FenceToken	token;
	Oid			database;
	Oid			relid;			/* the table of marks */
	uint32		length;
	char		resource[MAX_CACHED_LEN];
} CacheEntry;

typedef struct CacheSet
{
	pg_atomic_uint32 version;	/* odd: being written */
	slock_t		mutex;			/* of its writers */
	uint32		hand;			/* who gives way next */
	CacheEntry	entries[SET_SIZE];
} CacheSet;

typedef struct Cache
{
	pg_atomic_uint64 generation;
	uint32		nsets;
	CacheSet	sets[FLEXIBLE_ARRAY_MEMBER];
} Cache;

/* What an entry is found by. */
typedef struct CacheKey
{
	const ResourceKey *resource;
	Oid			relid;
	CacheSet   *set;
} CacheKey;

static Cache *cache = NULL;
static int	max_cached_marks = DEFAULT_MAX_CACHED;
static object_access_hook_type previous_access_hook = NULL;

static uint32
wanted_sets(void)
{
	return (max_cached_marks + SET_SIZE - 1) / SET_SIZE;
}

/* How much shared memory the cache takes, in bytes. */
Size
lockfence_cache_size(void)
{
	return add_size(offsetof(Cache, sets), mul_size(wanted_sets(), sizeof(CacheSet)));
}

/* Make new memory ready for use. */
void
lockfence_cache_init_memory(void *memory)
{
	Cache	   *fresh = (Cache *) memory;

	pg_atomic_init_u64(&fresh->generation, 1);
	fresh->nsets = wanted_sets();
	for (uint32 i = 0; i < fresh->nsets; i++)
	{
		pg_atomic_init_u32(&fresh->sets[i].version, 0);
		SpinLockInit(&fresh->sets[i].mutex);
		fresh->sets[i].hand = 0;
		memset(fresh->sets[i].entries, 0, sizeof(fresh->sets[i].entries));
	}
}

/* Is there a cache? */
static bool
have_cache(void)
{
	if (cache == NULL)
		cache = lockfence_shared_memory(LOCKFENCE_SHARED_CACHE);
	return cache != NULL && cache->nsets > 0;
}

/* A database is created: what is cached may be of one that had its OID. */
static void
at_object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id,
				 void *arg)
{
	if (previous_access_hook)
		previous_access_hook(access, class_id, object_id, sub_id, arg);
	if (access == OAT_POST_CREATE && class_id == DatabaseRelationId && have_cache())
		lockfence_cache_flush();
}

static bool
check_max_cached(int *newval, void **extra, GucSource source)
{
	return lockfence_settle_size(newval, DEFAULT_MAX_CACHED);
}

/* Called once a backend, or by the postmaster. */
void
lockfence_cache_init(void)
{
	DefineCustomIntVariable("lockfence.max_cached_marks",
							"Sets how many marks are cached in shared memory.",
							"0 caches none.",
							&max_cached_marks, DEFAULT_MAX_CACHED, 0, 1 << 24,
							lockfence_size_context(), 0, check_max_cached, NULL, NULL);
	previous_access_hook = object_access_hook;
	object_access_hook = at_object_access;
}

/* Prepare to look for a resource; false where it cannot be cached. */
static bool
make_key(CacheKey *key, const ResourceKey *resource)
{
	key->resource = resource;
	if (resource->length > MAX_CACHED_LEN || !have_cache())
		return false;
	key->relid = lockfence_mark_relid();
	key->set = &cache->sets[resource->hash % cache->nsets];
	return true;
}

static bool
entry_matches(const CacheEntry *entry, const CacheKey *key)
{
	return entry->hash == key->resource->hash && entry->generation != 0 &&
		entry->database == MyDatabaseId && entry->relid == key->relid &&
		entry->length == key->resource->length &&
		memcmp(entry->resource, key->resource->name, key->resource->length) == 0;
}

/* The set's entry for the key, or NULL. */
static CacheEntry *
find_entry(const CacheKey *key)
{
	for (int i = 0; i < SET_SIZE; i++)
	{
		if (entry_matches(&key->set->entries[i], key))
			return &key->set->entries[i];
	}
	return NULL;
}

static void
begin_writing(CacheSet *set)
{
	SpinLockAcquire(&set->mutex);
	pg_atomic_write_u32(&set->version, pg_atomic_read_u32(&set->version) + 1);
	pg_write_barrier();
}

static void
end_writing(CacheSet *set)
{
	pg_write_barrier();
	pg_atomic_write_u32(&set->version, pg_atomic_read_u32(&set->version) + 1);
	SpinLockRelease(&set->mutex);
}

/*
 * What an entry must bear to be found; read before the mark that goes in.
 * 0: a mark that is read now is not to be put.  So on a standby, where replay
 * changes marks without a lock and drops nothing: what was put would be
 * believed after promotion.
 */
uint64
lockfence_cache_generation(void)
{
	return have_cache() && !RecoveryInProgress() ?
		pg_atomic_read_u64(&cache->generation) : 0;
}

/*
 * The cached mark of a resource; 0: it is not there.  The look tells
 * lockfence_cache_unchanged() what was seen.
 */
FenceToken
lockfence_cache_find(const ResourceKey *resource, CacheLook *look)
{
	CacheKey	key;
	CacheEntry *entry;
	FenceToken	token = 0;

	if (!make_key(&key, resource))
		return 0;
	look->set = key.set;
	look->version = pg_atomic_read_u32(&key.set->version);
	pg_read_barrier();
	entry = find_entry(&key);
	if (entry != NULL)
	{
		token = entry->token;
		look->generation = entry->generation;
	}
	return token != 0 && lockfence_cache_unchanged(look) ? token : 0;
}

/* Would a look that found a mark find the same now? */
bool
lockfence_cache_unchanged(const CacheLook *look)
{
	pg_read_barrier();
	return (look->version & 1) == 0 &&
		pg_atomic_read_u32(&look->set->version) == look->version &&
		pg_atomic_read_u64(&cache->generation) == look->generation;
}

/* Put a mark that this transaction, holding the resource, saw committed. */
void
lockfence_cache_put(const ResourceKey *resource, FenceToken token, uint64 generation)
{
	CacheKey	key;
	CacheEntry *entry;

	if (generation == 0 || !make_key(&key, resource))
		return;
	begin_writing(key.set);
	entry = find_entry(&key);
	if (entry == NULL)
		entry = &key.set->entries[key.set->hand++ % SET_SIZE];
	entry->generation = generation;
	entry->hash = resource->hash;
	entry->token = token;
	entry->database = MyDatabaseId;
	entry->relid = key.relid;
	entry->length = resource->length;
	memcpy(entry->resource, resource->name, resource->length);
	end_writing(key.set);
}

/* Drop a resource's mark, which is about to change. */
void
lockfence_cache_drop(const ResourceKey *resource)
{
	CacheKey	key;
	CacheEntry *entry;

	if (!make_key(&key, resource))
		return;
	begin_writing(key.set);
	entry = find_entry(&key);
	if (entry != NULL)
		entry->generation = 0;
	end_writing(key.set);
}

/*
 * Empty the cache.  Called while invalidations are processed, when nothing may
 * be attached: who has not used the cache yet need not empty it, since those
 * who have will see the same invalidation before they look.
 */
void
lockfence_cache_flush(void)
{
	if (cache != NULL)
		pg_atomic_fetch_add_u64(&cache->generation, 1);
}
