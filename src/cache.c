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
 * Marks are changed by mark.c alone, as long as the catalogs are as they were when
 * the mark was read.  So an entry bears what they said then, before the read, and
 * is found only by who sees them say the same (witness.c).  That alone decides on
 * an old entry: no change of the catalogs empties the cache, and none has to be
 * heard of by those who filled it.  The indexes are not among what they say: a mark
 * was read by them once, and is what it was, whatever has become of them since.
 *
 * Locking.  Entries stand in sets, each with a spinlock for its writers and a
 * version that is odd while one is at work; readers take no lock and look again
 * at the version instead.  A name that is longer than an entry holds is not
 * cached.
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
	slock_t		mutex;			/* of its writers */
	uint32		hand;			/* who gives way next */
	CacheEntry	entries[SET_SIZE];
} CacheSet;

typedef struct Cache
{
	uint32		nsets;
	CacheSet	sets[FLEXIBLE_ARRAY_MEMBER];
} Cache;

/* What an entry is found by. */
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

/* Make new memory ready for use. */
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

/* Called once a backend, or by the postmaster. */
void
lockfence_cache_init(void)
{
	DefineCustomIntVariable("lockfence.max_cached_marks",
							"Sets how many marks are cached in shared memory.",
							"0 caches none.",
							&max_cached_marks, DEFAULT_MAX_CACHED, 0, 1 << 24,
							lockfence_size_context(), 0, check_max_cached, NULL, NULL);
}

/* The set in which a resource is looked for; NULL where it cannot be cached. */
static CacheSet *
set_of(const ResourceKey *resource)
{
	return resource->length <= MAX_CACHED_LEN && have_cache() ?
		&cache->sets[resource->hash % cache->nsets] : NULL;
}

/* Prepare to look for a mark; false where it cannot be cached. */
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
 * A number for what a mark that is read now is right by, to be put with it.
 * 0: it is not to be put.  So on a standby, where replay changes marks without a
 * lock and drops nothing: what was put would be believed after promotion.
 */
uint64
lockfence_cache_witness(void)
{
	return have_cache() && !RecoveryInProgress() && lockfence_mark_witness() != NULL ?
		lockfence_witness_changes : 0;
}

/* Has nobody written to the set since, nor was at it? */
static bool
set_is_unchanged(const CacheLook *look)
{
	pg_read_barrier();
	return (look->version & 1) == 0 &&
		pg_atomic_read_u32(&look->set->version) == look->version;
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
	look->changes = lockfence_witness_changes;
	look->version = pg_atomic_read_u32(&key.set->version);
	pg_read_barrier();
	entry = find_entry(&key);
	if (entry != NULL)
		token = entry->token;
	return token != 0 && set_is_unchanged(look) ? token : 0;
}

/* Would a look that found a mark find the same now? */
bool
lockfence_cache_unchanged(const CacheLook *look)
{
	return set_is_unchanged(look) && lockfence_witness_changes == look->changes;
}

/* Put a mark that this transaction, holding the resource, saw committed. */
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
 * Drop a resource's mark, which is about to change: under whatever it was put,
 * since others may not see yet what this session sees of the catalogs.
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
