/*
 * fencecache.c
 *		The fences of tables: read from the guards' arguments, resolved, and kept.
 *
 * The arguments of a guard are the only place where a fence's settings live, so
 * that they survive pg_dump and cannot disagree with a second copy.  Columns are
 * named, and resolved per relation, since partitions number theirs differently.
 * A name that cannot be resolved is an error: a fence that does not know its
 * resource rejects all writes; or reports them all, if it is advisory, for which
 * the error is kept with it.
 *
 * Parsed fences are cached per backend, by trigger.  An invalidation only raises
 * counters; a stale fence is parsed again at its next use.  Before any fence is
 * parsed, all stale ones are dropped, since their triggers may be gone for good.
 * The transaction's end frees them, as a guard further up may still use them.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "advisory.h"
#include "args.h"
#include "attempt.h"
#include "check.h"
#include "fencecache.h"
#include "fencedef.h"
#include "guardtype.h"
#include "lockfence.h"
#include "record.h"
#include "template.h"
#include "trigarg.h"
#include "visible.h"

typedef struct CachedFence
{
	Oid			trigger;		/* hash key */
	Oid			relid;
	uint64		changes;		/* of the relation, as far as this backend has
								 * been told */
	uint64		parsed_changes; /* of which the fence knows; 0: not parsed */
	MemoryContext context;		/* holds the fence */
	Fence	   *fence;
} CachedFence;

/* The fence that was asked for last. */
typedef struct LastFence
{
	Oid			trigger;
	uint64		generation;		/* 0: none yet */
	const Fence *fence;
} LastFence;

PG_FUNCTION_INFO_V1(lockfence_resource_of);

static HTAB *fences = NULL;
static uint64 generation = 1;	/* changes when any cached fence turns stale */
static uint64 swept = 1;		/* the generation up to which they are dropped */
static LastFence last_fence;

/* A relcache entry has changed: the fences of that relation are stale. */
void
lockfence_fencecache_at_relcache(Oid relid)
{
	HASH_SEQ_STATUS status;
	CachedFence *cached;

	if (fences == NULL)
		return;
	hash_seq_init(&status, fences);
	while ((cached = hash_seq_search(&status)) != NULL)
	{
		if (relid == cached->relid || !OidIsValid(relid) || lockfence_is_record(relid))
		{
			cached->changes++;
			generation++;
		}
	}
}

/* The table's owner must have the right to call the validator. */
static void
check_validator(const Fence *fence, Relation rel)
{
	if (OidIsValid(fence->validator) &&
		!DatumGetBool(DirectFunctionCall3(has_function_privilege_id_id,
										  ObjectIdGetDatum(rel->rd_rel->relowner),
										  ObjectIdGetDatum(fence->validator),
										  CStringGetTextDatum("EXECUTE"))))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s",
						lockfence_visible(get_func_name(fence->validator))),
				 errdetail("The owner of table \"%s\" may not execute its fence's validator.",
						   lockfence_visible(RelationGetRelationName(rel)))));
}

/*
 * The function that a fence names as its validator, looked up as the table's owner:
 * it may be in a schema that is closed to the role that writes.
 */
static Oid
find_validator(Relation rel, const char *signature)
{
	Oid			validator;
	Oid			user;
	int			context;

	if (signature == NULL)
		return InvalidOid;
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(rel->rd_rel->relowner, context | SECURITY_LOCAL_USERID_CHANGE);
	validator = DatumGetObjectId(DirectFunctionCall1(regprocedurein, CStringGetDatum(signature)));
	SetUserIdAndSecContext(user, context);
	return validator;
}

static char *
copy_setting(const FenceSettings *settings, FenceSetting setting)
{
	const char *value = settings->values[setting];

	return value ? pstrdup(value) : NULL;
}

/* Is that word the value of a setting? */
static bool
has_word(const FenceSettings *settings, FenceSetting setting, const char *word)
{
	return settings->values[setting] != NULL && strcmp(settings->values[setting], word) == 0;
}

/* What a trigger's arguments declare; an error if they are not valid. */
static void
take_settings(Fence *fence, Relation rel, const FenceSettings *settings)
{
	lockfence_raise_fault(&settings->fault);
	fence->resource = copy_setting(settings, SETTING_RESOURCE);
	fence->token_column = copy_setting(settings, SETTING_TOKEN_COLUMN);
	fence->presented_only = has_word(settings, SETTING_ACCEPT, ACCEPT_PRESENTED);
	fence->named_only = has_word(settings, SETTING_ACCEPT, ACCEPT_NAMED);
	fence->reads_column = has_word(settings, SETTING_ACCEPT, ACCEPT_READ);
	fence->single_use = settings->values[SETTING_REPEAT] != NULL;
	fence->validator = find_validator(rel, settings->values[SETTING_VALIDATOR]);
}

/* The token column must exist, and be able to hold tokens. */
static void
resolve_token_column(Fence *fence, Relation rel)
{
	fence->token_attno = lockfence_resolve_column(rel, fence->token_column);
	fence->last_attno = Max(fence->last_attno, fence->token_attno);
	lockfence_take_token_type(fence, TupleDescAttr(RelationGetDescr(rel), fence->token_attno - 1)->atttypid);
}

/* The commands that need no token: "allow" is TRUNCATE too, where that could present one. */
static WriteCommand
missing_commands(const Fence *fence, const char *value)
{
	WriteCommand commands = 0;

	if (value != NULL && lockfence_read_missing(value, &commands) &&
		fence->constant && strcmp(value, MISSING_ALLOW) == 0)
		commands |= WRITE_TRUNCATE;
	return commands;
}

/* A fence that is being made of a trigger's arguments. */
typedef struct Making
{
	Fence	   *fence;
	Relation	rel;
	FenceSettings settings;
} Making;

/* Resolve what is declared against the table. */
static void
resolve_fence(void *arg)
{
	Making	   *making = (Making *) arg;
	Fence	   *fence = making->fence;
	Relation	rel = making->rel;

	take_settings(fence, rel, &making->settings);
	if (fence->resource)
	{
		lockfence_split_template(fence, fence->resource);
		lockfence_resolve_template(fence, rel);
	}
	else if (fence->token_column == NULL)
		lockfence_refuse_setting("resource", "A fence needs a resource or a token column.");
	else if (fence->reads_column)
		lockfence_refuse_setting("accept=" ACCEPT_READ, "The mark of a row fence is in its token column, which has to be written.");
	if (fence->token_column)
		resolve_token_column(fence, rel);
	fence->missing = missing_commands(fence, making->settings.values[SETTING_MISSING]);
	check_validator(fence, rel);
	fence->unrecorded = lockfence_lacks_record(fence, rel);
}

/* The fence of a trigger's arguments.  What is wrong with one that is advisory is kept with it. */
static Fence *
parse_fence(Relation rel, const Trigger *trigger)
{
	Fence	   *fence = palloc0(sizeof(Fence));
	Making		making = {.fence = fence,.rel = rel};

	for (int i = 0; i < trigger->tgnargs; i++)
		lockfence_read_argument(&making.settings, trigger->tgargs[i]);
	fence->advisory = making.settings.values[SETTING_ENFORCEMENT] != NULL;
	if (!lockfence_is_advisory(fence))
		resolve_fence(&making);
	else
		fence->fault = lockfence_attempt(resolve_fence, &making);
	if (fence->fault != NULL && lockfence_is_of_session(fence->fault))
		ReThrowError(fence->fault);
	return fence;
}

/*
 * A copy of the trigger with its arguments: those of a relcache entry are freed
 * when the entry is rebuilt, which any catalog look-up may cause.
 */
static Trigger
copy_trigger(const Trigger *trigger)
{
	Trigger		copy = *trigger;

	copy.tgargs = palloc(Max(copy.tgnargs, 1) * sizeof(char *));
	for (int i = 0; i < copy.tgnargs; i++)
		copy.tgargs[i] = pstrdup(trigger->tgargs[i]);
	return copy;
}

/* Let the transaction's end free the fence. */
static void
release_fence(CachedFence *cached)
{
	if (cached->context != NULL)
		MemoryContextSetParent(cached->context, TopTransactionContext);
	cached->context = NULL;
	cached->fence = NULL;
}

static bool
is_stale(const CachedFence *cached)
{
	return cached->parsed_changes != cached->changes;
}

/* Drop every stale fence. */
static void
drop_stale_fences(void)
{
	HASH_SEQ_STATUS status;
	CachedFence *cached;

	if (swept == generation)
		return;
	hash_seq_init(&status, fences);
	while ((cached = hash_seq_search(&status)) != NULL)
	{
		if (!is_stale(cached))
			continue;
		release_fence(cached);
		(void) hash_search(fences, &cached->trigger, HASH_REMOVE, NULL);
	}
	swept = generation;
}

/*
 * Make or renew the cache entry of a trigger.  The entry is valid once all has been
 * parsed, and as of the moment in which that began: an invalidation in between leaves
 * it stale.
 */
static void
load_fence(CachedFence *cached, Relation rel, const Trigger *trigger)
{
	uint64		before = cached->changes;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "lockfence fence",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Fence	   *fence = parse_fence(rel, trigger);

	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, CacheMemoryContext);
	release_fence(cached);
	cached->context = context;
	cached->fence = fence;
	cached->parsed_changes = before;
}

/* Parse the trigger's arguments until no invalidation comes in between. */
static void
refresh_fence(CachedFence *cached, Relation rel, Trigger trigger)
{
	while (is_stale(cached))
		load_fence(cached, rel, &trigger);
}

/* The fence that a trigger of the relation declares. */
static const Fence *
cached_fence(Relation rel, const Trigger *trigger)
{
	CachedFence *cached;
	bool		found;

	if (fences == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(CachedFence)};

		fences = hash_create("lockfence fences", 64, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	cached = hash_search(fences, &trigger->tgoid, HASH_FIND, NULL);
	if (cached != NULL && !is_stale(cached))
		return cached->fence;
	drop_stale_fences();
	cached = hash_search(fences, &trigger->tgoid, HASH_ENTER, &found);
	if (!found)
	{
		cached->relid = RelationGetRelid(rel);
		cached->changes = 1;
		cached->parsed_changes = 0;
		cached->context = NULL;
		cached->fence = NULL;
	}
	refresh_fence(cached, rel, copy_trigger(trigger));
	return cached->fence;
}

/* Raise the error for a fence that cannot decide. */
static void
require_whole(const Fence *fence)
{
	if (unlikely(fence->fault != NULL))
		ReThrowError(fence->fault);
}

/*
 * The fence of the trigger that is being called.  Only an advisory one may have a fault.
 */
const Fence *
lockfence_trigger_fence(FunctionCallInfo fcinfo)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Oid			oid = trigger->tg_trigger->tgoid;

	if (last_fence.trigger != oid || last_fence.generation != generation)
	{
		const Fence *fence = cached_fence(trigger->tg_relation, trigger->tg_trigger);

		last_fence = (LastFence) {oid, generation, fence};
	}
	if (unlikely(last_fence.fence->fault != NULL) && !lockfence_is_advisory(last_fence.fence))
		require_whole(last_fence.fence);
	return last_fence.fence;
}

/* What the fence asks of a write to the resource. */
FenceCheck
lockfence_fence_check(const Fence *fence, Relation rel, const char *resource)
{
	return (FenceCheck) {
		.write = {.rel = rel,.resource = resource,.advisory = lockfence_is_advisory(fence)},
		.fence = fence,
		.single_use = fence->single_use,
		.validator = fence->validator
	};
}

/* Is a trigger a guard that is sure to fire for every write? */
static bool
is_sure_guard(const Trigger *trigger)
{
	return trigger->tgenabled == TRIGGER_FIRES_ALWAYS && trigger->tgnattr == 0 &&
		trigger->tgqual == NULL && !TRIGGER_FOR_TRUNCATE(trigger->tgtype) &&
		trigger->tgtype == lockfence_guard_type(trigger->tgfoid);
}

/* The fence of a relation, or NULL if no guard is sure to fire.  Only an advisory one may have a fault. */
const Fence *
lockfence_written_fence(Relation rel)
{
	/* a copy, since looking up a function may rebuild the relcache entry */
	TriggerDesc *triggers = CopyTriggerDesc(rel->trigdesc);

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Fence *fence;

		if (!is_sure_guard(&triggers->triggers[i]))
			continue;
		fence = cached_fence(rel, &triggers->triggers[i]);
		if (!lockfence_is_advisory(fence))
			require_whole(fence);
		return fence;
	}
	return NULL;
}

/* The same, but an error if it has one. */
const Fence *
lockfence_relation_fence(Relation rel)
{
	const Fence *fence = lockfence_written_fence(rel);

	if (fence != NULL)
		require_whole(fence);
	return fence;
}

/* resource_of(target regclass, row record): the resource of a row, or null */
Datum
lockfence_resource_of(PG_FUNCTION_ARGS)
{
	Relation	rel = lockfence_open_table(PG_GETARG_OID(0), AccessShareLock);
	const Fence *fence = lockfence_relation_fence(rel);
	HeapTupleHeader row = PG_GETARG_HEAPTUPLEHEADER(1);
	char	   *resource = NULL;

	if (HeapTupleHeaderGetTypeId(row) != rel->rd_rel->reltype)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the row is not of table \"%s\"", lockfence_visible(RelationGetRelationName(rel)))));
	if (fence != NULL && fence->resource != NULL)
	{
		TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(rel),
														&TTSOpsHeapTuple);
		HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(row),.t_data = row};

		ExecStoreHeapTuple(&tuple, slot, false);
		resource = lockfence_slot_resource(fence, rel, slot);
		ExecDropSingleTupleTableSlot(slot);
	}
	table_close(rel, AccessShareLock);
	if (resource == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(resource));
}
