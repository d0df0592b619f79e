/*
 * cache.c
 *		Committed marks in shared memory, so that the equal path reads no index.
 *
 * Why a hit can be trusted.  An entry is put by a transaction that holds the
 * resource's lock in hold mode and has seen, under it, that the mark is committed
 * and that no transaction is changing it.  A transaction that changes the mark
 * drops the entry, under the lock in advance mode, before it writes the first
 * byte; the two modes conflict.  So a transaction that finds an entry while it
 * holds the lock in hold mode knows that no change came after the entry was put,
 * and that none can come before its own end.  An entry that is found without the
 * lock is only a reason to take it.
 *
 * Only mark.c changes marks, as long as the catalogs are as they were when the mark
 * was read.  So an entry carries their state before the read, and only a backend
 * that sees the same state finds it (witness.c).  That alone decides about an old
 * entry: no change of the catalogs empties the cache, and the backends that filled
 * it need not hear of any.  The state does not include the indexes: a mark was
 * read by them once, and stays what it was whatever becomes of them.
 *
 * Locking.  Entries are in sets.  Each set has a spinlock for its writers and a
 * version that is odd while it is being written; readers take no lock, but check
 * the version again.  A name that does not fit in an entry is not cached.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "port/atomics.h"
#include "storage/lock.h"
#include "storage/spin.h"

#include "cache.h"
#include "lockfence.h"
#include "resource.h"
#include "shmem.h"
#include "witness.h"

#define SET_SIZE		4
#define MAX_CACHED_LEN	88
#define DEFAULT_MAX_CACHED 16384

typedef struct CacheEntry
{
	uint64		hash;
	FenceToken	token;			/* 0: free */
	MarkWitness witness;
	uint32		length;
	char		resource[MAX_CACHED_LEN];
} CacheEntry;

typedef struct CacheSet
{
	pg_atomic_uint32 version;	/* odd: being written */
	slock_t		mutex;			/* of the writers */
	uint32		hand;			/* the entry that is replaced next */
	CacheEntry	entries[SET_SIZE];
} CacheSet;

typedef struct Cache
{
	uint32		nsets;
	CacheSet	sets[FLEXIBLE_ARRAY_MEMBER];
} Cache;

/* The key of an entry. */
typedef struct CacheKey
{
	const ResourceKey *resource;
	const MarkWitness *witness;
	CacheSet   *set;
} CacheKey;

static Cache *cache = NULL;
static int	max_cached_marks = DEFAULT_MAX_CACHED;

static uint32
wanted_sets(void)
{
	return (max_cached_marks + SET_SIZE - 1) / SET_SIZE;
}

/* How much shared memory the cache takes, in bytes. */
static Size
memory_size(void)
{
	return add_size(offsetof(Cache, sets), mul_size(wanted_sets(), sizeof(CacheSet)));
}

/* Initialize new memory. */
static void
init_memory(void *memory)
{
	Cache	   *fresh = (Cache *) memory;

	fresh->nsets = wanted_sets();
	for (uint32 i = 0; i < fresh->nsets; i++)
	{
		pg_atomic_init_u32(&fresh->sets[i].version, 0);
		SpinLockInit(&fresh->sets[i].mutex);
		fresh->sets[i].hand = 0;
		memset(fresh->sets[i].entries, 0, sizeof(fresh->sets[i].entries));
	}
}

const SharedSegment lockfence_cache_segment = {memory_size, init_memory};

/* Is there a cache? */
static bool
have_cache(void)
{
	if (cache == NULL)
		cache = lockfence_shared_memory(&lockfence_cache_segment);
	return cache != NULL && cache->nsets > 0;
}

static bool
check_max_cached(int *newval, void **extra, GucSource source)
{
	return lockfence_settle_size(newval, DEFAULT_MAX_CACHED);
}

/* Called once per backend, or by the postmaster. */
void
lockfence_cache_init(void)
{
	DefineCustomIntVariable("lockfence.max_cached_marks",
							"Sets how many marks are cached in shared memory.",
							"0 caches none.",
							&max_cached_marks, DEFAULT_MAX_CACHED, 0, 1 << 24,
							lockfence_size_context(), 0, check_max_cached, NULL, NULL);
}

/* The set of a resource; NULL if the resource cannot be cached. */
static CacheSet *
set_of(const ResourceKey *resource)
{
	return resource->length <= MAX_CACHED_LEN && have_cache() ?
		&cache->sets[resource->hash % cache->nsets] : NULL;
}

/* Prepare to look a mark up; false if it cannot be cached. */
static bool
make_key(CacheKey *key, const ResourceKey *resource)
{
	key->resource = resource;
	key->set = set_of(resource);
	if (key->set == NULL)
		return false;
	key->witness = lockfence_mark_witness();
	return key->witness != NULL;
}

static inline bool
same_witness(const MarkWitness *a, const MarkWitness *b)
{
	return a->writers[0] == b->writers[0] && a->writers[1] == b->writers[1] &&
		a->writers[2] == b->writers[2] && a->writers[3] == b->writers[3] &&
		a->items == b->items;
}

static bool
entry_matches(const CacheEntry *entry, const CacheKey *key)
{
	return entry->hash == key->resource->hash &&
		entry->length == key->resource->length &&
		memcmp(entry->resource, key->resource->name, key->resource->length) == 0 &&
		same_witness(&entry->witness, key->witness);
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
 * A number for the witness of a mark that is read now, to be put with it; 0: do not
 * put it.  That is so on a standby, where replay changes marks without a lock and
 * drops nothing: the entry would be believed after promotion.
 */
uint64
lockfence_cache_witness(void)
{
	return have_cache() && !RecoveryInProgress() && lockfence_mark_witness() != NULL ?
		lockfence_witness_changes : 0;
}

/* Has no backend written to the set since, and was none writing? */
static bool
set_is_unchanged(const CacheLook *look)
{
	pg_read_barrier();
	return (look->version & 1) == 0 &&
		pg_atomic_read_u32(&look->set->version) == look->version;
}

/*
 * The cached mark of a resource; 0: it is not cached.  "look" records what was seen,
 * for lockfence_cache_unchanged().
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
	look->changes = lockfence_witness_changes;
	look->version = pg_atomic_read_u32(&key.set->version);
	pg_read_barrier();
	entry = find_entry(&key);
	if (entry != NULL)
		token = entry->token;
	return token != 0 && set_is_unchanged(look) ? token : 0;
}

/* Would a lookup that found a mark find the same one now? */
bool
lockfence_cache_unchanged(const CacheLook *look)
{
	return set_is_unchanged(look) && lockfence_witness_changes == look->changes;
}

/* Put a mark that this transaction, which holds the resource, saw committed. */
void
lockfence_cache_put(const ResourceKey *resource, FenceToken token, uint64 witness)
{
	CacheKey	key;
	CacheEntry *entry;

	if (witness == 0 || witness != lockfence_witness_changes ||
		!make_key(&key, resource))
		return;
	begin_writing(key.set);
	entry = find_entry(&key);
	if (entry == NULL)
		entry = &key.set->entries[key.set->hand++ % SET_SIZE];
	entry->hash = resource->hash;
	entry->token = token;
	entry->witness = *key.witness;
	entry->length = resource->length;
	memcpy(entry->resource, resource->name, resource->length);
	end_writing(key.set);
}

/*
 * Drop a resource's mark, which is about to change, under any witness: other
 * sessions may not yet see the catalogs that this one sees.
 */
void
lockfence_cache_drop(const ResourceKey *resource)
{
	CacheSet   *set = set_of(resource);

	if (set == NULL)
		return;
	begin_writing(set);
	for (int i = 0; i < SET_SIZE; i++)
	{
		if (set->entries[i].hash == resource->hash)
			set->entries[i].token = 0;
	}
	end_writing(set);
}
