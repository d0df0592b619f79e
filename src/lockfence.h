/*
 * lockfence.h
 *		The types and prototypes that the rooms share.
 */
#ifndef LOCKFENCE_H
#define LOCKFENCE_H

#include "access/htup.h"
#include "access/skey.h"
#include "access/xact.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "port/atomics.h"
#include "storage/buf.h"
#include "storage/itemptr.h"
#include "storage/lock.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/rel.h"

/* The schema that holds every object of the extension; fixed. */
#define LOCKFENCE_SCHEMA "lockfence"

/* Longest resource name, and template, in bytes: a mark must fit an index entry. */
#define LOCKFENCE_MAX_RESOURCE_LEN 1024

/* Longest arguments of a guard that are looked at: the template, and some names. */
#define LOCKFENCE_MAX_ARGUMENTS_LEN (8 * LOCKFENCE_MAX_RESOURCE_LEN)

/*
 * A fencing token: epoch (15 bits) * 2^48 + revision (48 bits), always > 0.
 * Zero stands for "no token" wherever a token may be absent.
 */
typedef int64 FenceToken;

#define LOCKFENCE_REVISION_BITS 48
#define LOCKFENCE_MAX_REVISION ((INT64CONST(1) << LOCKFENCE_REVISION_BITS) - 1)
#define LOCKFENCE_MAX_EPOCH 32767

/* What to report of a write that is refused, and how. */
typedef struct FencedWrite
{
	Relation	rel;			/* table written to; NULL: no table, present() */
	const char *resource;		/* what the token was shown for; NULL: the row */
	const struct Fence *named_by;	/* whose template a row's values filled in for
									 * that; NULL: the caller gave the name */
	TupleTableSlot *row;		/* ... on a row fence */
	bool		advisory;		/* report instead of refusing */
} FencedWrite;

/* A resource of this database as it is looked up: one hash serves lock and cache. */
typedef struct ResourceKey
{
	const char *name;
	uint32		length;			/* of the name */
	uint64		hash;
} ResourceKey;

/* The tokens that a write shows, 0 where there is none.  They have to agree. */
typedef struct ShownTokens
{
	FenceToken	column;			/* put there by the statement ... */
	bool		is_invalid;		/* ... and no token, or ... */
	bool		is_null;		/* ... null */
	FenceToken	named;			/* presented for the resource */
	FenceToken	ambient;		/* presented for whatever is written */
	FenceToken	given;			/* to the function that is called */
	bool		is_settled;		/* refused and reported for the whole call, where
								 * the fence is advisory */
	FenceToken	carried;		/* accepted for the other half of a row's move;
								 * counts where the rest is missing */
} ShownTokens;

/* One question to the fence: may this write go on? */
typedef struct FenceCheck
{
	FencedWrite write;
	const struct Fence *fence;	/* NULL: present(), which is of no table */
	FenceToken	token;			/* the one that counts */
	FenceToken	stored;			/* in the row, if that is of the resource */
	bool		own_row;		/* this transaction has written that row */
	bool		needs_none;		/* a row that is nobody's yet */
	bool		sets_columns;	/* the write could show a token in a column */
	bool		single_use;		/* equal is stale too */
	Oid			validator;		/* asked before an advance; InvalidOid: the
								 * default one, if there is one */
	bool		by_administrator;	/* by a function that runs as its owner */
} FenceCheck;

/* What this transaction holds for a resource: an entry of its memo. */
typedef struct HeldToken
{
	FenceToken	token;			/* accepted; 0: nothing held */
	bool		advanced;		/* above all that stood before */
	bool		locked;			/* by a note or a lock (hold.c), not a tuple lock */
	Oid			table;			/* whose row gave the name, which the caller need
								 * not know; InvalidOid: the caller did */
} HeldToken;

/* lockfence.c: settings */
extern bool lockfence_bypass;
extern bool lockfence_preempt;
extern int	lockfence_max_resource_locks;

/* token.c */
extern int	lockfence_token_epoch(FenceToken token);
extern char *lockfence_token_text(FenceToken token);
extern void lockfence_require_token(FunctionCallInfo fcinfo, int argno);
extern char *lockfence_require_resource(FunctionCallInfo fcinfo, int argno);

/* state.c: what holds for every resource at once */
typedef struct RecordedTimeline
{
	bool		found;
	bool		other_system;	/* by another cluster */
	bool		uncommitted;	/* by this transaction */
	TimeLineID	timeline;
	ItemPointerData tid;
} RecordedTimeline;

extern int	lockfence_state_epoch(void);
extern FenceToken lockfence_state_minimum(void);
extern FenceToken lockfence_state_floor(void);
extern RecordedTimeline lockfence_state_timeline(void);
extern bool lockfence_state_try_timeline(const RecordedTimeline *recorded,
										 TimeLineID timeline);
extern RecordedTimeline lockfence_state_set_timeline(TimeLineID timeline);
extern void lockfence_state_forget(void);

/* timeline.c: the gate, shut when the database's history went back */
extern bool lockfence_gate_is_open;
extern bool lockfence_try_gate(const FencedWrite *write);
extern bool lockfence_gate_is_sealed(void);
extern void lockfence_forget_gate(void);
extern void lockfence_timeline_init(void);

/* May anything be written at all?  Refuses it if not. */
static inline bool
lockfence_pass_gate(const FencedWrite *write)
{
	return likely(lockfence_gate_is_open) || lockfence_try_gate(write);
}

/* relation.c: the table of marks and its indexes */
#define LOCKFENCE_MARK_RESOURCE 3	/* column */

extern Oid	lockfence_relation_oid(const char *name);
extern Oid	lockfence_mark_relid(void);
extern Relation lockfence_open_relation(const char *name, LOCKMODE mode);
extern Relation lockfence_open_marks(void);
extern Oid	lockfence_mark_index(void);
extern Oid	lockfence_mark_hash(void);
extern void lockfence_require_intact_marks(Relation marks);

/* witness.c: what a cached mark is right by, as the versions of four rows */
typedef struct MarkWitness
{
	uint64		writers[4];		/* of each row: its xmin, and its block */
	uint64		items;			/* in the block, 16 bits each */
} MarkWitness;

extern uint64 lockfence_witness_changes;
extern const MarkWitness *lockfence_mark_witness(void);

/* latest.c: rows as they were committed last */
typedef struct LatestScan
{
	struct SnapshotData *snapshot;
	struct SysScanDescData *versions;
} LatestScan;

extern void lockfence_latest_begin(LatestScan *scan, Relation rel, Oid index,
								   int nkeys, ScanKey keys);
extern HeapTuple lockfence_latest_next(LatestScan *scan);
extern void lockfence_latest_end(LatestScan *scan);

/* intact.c: are the tables that are written to directly as they were made? */
typedef enum ThingHarm
{
	THING_IS_HARMLESS,
	THING_SPOILS_WRITES,		/* they would be lost or wrong */
	THING_SPOILS_READS			/* not even that can be done */
} ThingHarm;

typedef struct ForeignThing
{
	Oid			relid;
	const char *table;			/* its name, without the schema */
	const char *kind;
	const char *name;			/* NULL: there is one of the kind only */
	ThingHarm	harm;
} ForeignThing;

extern List *lockfence_foreign_things_of_all(void);
extern const char *lockfence_own_table(Oid relid);
extern bool lockfence_index_is_sorted(HeapTuple tuple);
extern char *lockfence_thing_text(const ForeignThing *thing);
extern bool lockfence_is_intact(Relation rel);
extern void lockfence_require_intact(Relation rel);
extern void lockfence_require_readable(Relation rel);
extern struct ResultRelInfo *lockfence_open_indexes(Relation rel);

/* mark.c: the mark of one resource */
typedef struct MarkScan
{
	const ResourceKey *resource;
	Relation	rel;
	HeapTupleData version;		/* the one that was read last, ... */
	Buffer		buffer;			/* ... in its page, which is pinned */
	struct SnapshotData *dirty;
	bool		found;			/* a mark, committed or of this transaction */
	bool		own;			/* ... of this transaction */
	bool		of_command;		/* ... of its current command */
	FenceToken	token;
	uint64		witness;		/* of the mark, before the read (cache.c) */
	TransactionId changing;		/* another transaction changes the mark */
	FenceToken	pending;		/* ... to this token; 0: removes it */
} MarkScan;

extern void lockfence_mark_begin(MarkScan *scan, const ResourceKey *resource);
extern void lockfence_mark_look_again(MarkScan *scan);
extern void lockfence_mark_unpin(MarkScan *scan);
extern bool lockfence_mark_unchanged(MarkScan *scan);
extern bool lockfence_mark_lock_tuple(MarkScan *scan);
extern List *lockfence_mark_lockers(MarkScan *scan);
extern void lockfence_mark_write(MarkScan *scan, FenceToken token);
extern void lockfence_mark_remove(MarkScan *scan);
extern void lockfence_mark_end(MarkScan *scan);
extern FenceToken lockfence_mark_peek(const char *resource);

/* damage.c: marks that are not what they should be */
extern void lockfence_require_row(const MarkScan *scan, ItemPointer tid);
extern void lockfence_report_damage(const MarkScan *scan);

/* hint.c: where this backend saw marks last */
extern bool lockfence_hint_find(const ResourceKey *resource, ItemPointer tid,
								Buffer *buffer);
extern void lockfence_hint_put(const ResourceKey *resource, ItemPointer tid,
							   Buffer buffer);

/* durable.c: commits that must not be lost */
extern void lockfence_commit_durably(void);

/* holder.c: what this transaction has presented */
extern FenceToken lockfence_ambient_token(void);
extern void lockfence_set_ambient_token(FenceToken token);
extern const HeldToken *lockfence_held_token(const char *resource);
extern bool lockfence_holds_token(FenceToken token);
extern void lockfence_remember_token(const char *resource, HeldToken held);
extern void lockfence_forget_token(const char *resource);
extern void lockfence_reveal_name(const char *resource);
extern int	lockfence_held_locks(void);
extern uint64 lockfence_held_version(void);
extern bool lockfence_first_bypass(Oid relid);

/* A guarded function's token: for the rows that its statement writes to the target. */
typedef struct CallToken
{
	FenceToken	token;
	bool		refused;		/* and reported, by an advisory fence */
	Oid			target;
	List	   *below;			/* OIDs of its partitions and children */
	int			depth;			/* of triggers, in the target's guards */
	const struct CallToken *outer;	/* the call during which this one came */
} CallToken;

extern void lockfence_begin_call(CallToken *call, Relation target);
extern void lockfence_end_call(const CallToken *call);
extern const CallToken *lockfence_current_call;
extern const CallToken *lockfence_find_call(Relation rel);

/* The call that writes to the table, from the table's guard; NULL: none. */
static inline const CallToken *
lockfence_call_token(Relation rel)
{
	return likely(lockfence_current_call == NULL) ? NULL : lockfence_find_call(rel);
}

/* move.c: rows that move to another partition */
typedef struct RowMove
{
	Oid			from;			/* the partition that it leaves, ... */
	const char *column;			/* ... its fence's token column; NULL: none */
	FenceToken	shown;			/* in that, by the UPDATE; 0: none */
	FenceToken	accepted;		/* for the UPDATE; 0: it went unprotected */
	bool		by_row;			/* ... for the row itself, by its own mark */
	bool		is_new;			/* ... and not in the row before this transaction */
	const Bitmapset *set;		/* the columns that the UPDATE sets, as that
								 * partition numbers them */
	HeapTuple	old;			/* the row before; known once it has moved out */
} RowMove;

extern void lockfence_remember_update(ItemPointer tid, RowMove move);
extern bool lockfence_row_moves_out(Oid relid, HeapTuple tuple, RowMove *move);
extern bool lockfence_row_moves_in(Oid relid, RowMove *move);
extern void lockfence_undo_moves(int level);
extern void lockfence_reparent_moves(int level);
extern void lockfence_forget_moves(void);

/* fence.c: the decision */
extern bool lockfence_would_pass(FenceToken token, FenceToken mark, bool single_use);
extern bool lockfence_admit_shown(FenceCheck *check, const ShownTokens *shown);
extern FenceToken lockfence_admit(FenceCheck *check, const ShownTokens *shown,
								  FenceToken *previous);
extern bool lockfence_raise_mark(const char *resource, FenceToken token,
								 FenceToken *before);

/* validator.c: asking whether a token was granted */
extern void lockfence_validator_init(void);
extern bool lockfence_has_validator(const FenceCheck *check);
extern bool lockfence_ask_validator(const FenceCheck *check);
extern bool lockfence_vouch_for(const FencedWrite *write, FenceToken token);
extern void lockfence_count_open(void);
extern const char *lockfence_visible_to_asker(const char *text);

/* hold.c: who holds a resource */
extern void lockfence_set_resource_key(ResourceKey *key, const char *resource);
extern LOCKTAG lockfence_resource_tag(const ResourceKey *resource);
extern void lockfence_lock_shared(const ResourceKey *resource, bool briefly);
extern void lockfence_confirm_shared(void);
extern void lockfence_unlock_shared(const ResourceKey *resource);
extern void lockfence_claim(const ResourceKey *resource);
extern void lockfence_unclaim(void);
extern bool lockfence_is_held_lightly(const ResourceKey *resource);
extern void lockfence_wait_for_light_holders(const ResourceKey *resource);
extern void lockfence_wait_for_all_holders(void);
extern List *lockfence_holder_pids(const ResourceKey *resource);
extern Size lockfence_holds_size(void);
extern void lockfence_holds_init_memory(void *memory);

/* contend.c: the exclusive lock, and waiting for those in the way of an advance */
extern void lockfence_lock_exclusive(const ResourceKey *resource);
extern bool lockfence_claim_exclusive(const FenceCheck *check, MarkScan *scan);
extern bool lockfence_try_lock_exclusive(const ResourceKey *resource);
extern void lockfence_unlock_exclusive(const ResourceKey *resource);
extern void lockfence_settle_lockers(List *lockers, const FenceCheck *check);
extern void lockfence_wait_for_change(TransactionId xid, FenceToken pending,
									  const FenceCheck *check);
extern void lockfence_wait_for_end(TransactionId xid, const ResourceKey *resource);

/* preempt.c: ending outdated holders */
extern bool lockfence_preempt_holders(List *pids, bool again, const FenceCheck *check);
extern bool lockfence_break_deadlocks(List *pids, const FenceCheck *check);
extern bool lockfence_waits_for_me(int pid);

/* ended.c: why a transaction was ended */
extern void lockfence_note_end(int pid, const FenceCheck *check);
extern void lockfence_explain_end(ErrorData *edata);
extern Size lockfence_ended_size(void);
extern void lockfence_ended_init_memory(void *memory);

/* trigarg.c: a fence as its trigger's arguments declare it */
typedef struct TemplatePart
{
	char	   *literal;		/* text; NULL: the value of a column */
	int			length;			/* of the text */
	AttrNumber	attno;
	Oid			type;			/* of the column */
	FmgrInfo	output;
} TemplatePart;

typedef struct Fence
{
	/* as declared */
	char	   *resource;		/* NULL: every row is its own resource */
	char	   *token_column;	/* NULL: none */
	bool		presented_only; /* the column is no proof */
	bool		advisory;
	TimestampTz advisory_since; /* 0: not told */
	bool		missing_allowed;
	bool		single_use;
	Oid			validator;
	bool		unrecorded;		/* its table should be on record, and is not */

	/* as resolved against a tuple descriptor */
	AttrNumber	token_attno;	/* 0: none */
	int			nparts;
	TemplatePart *parts;
	bool		constant;		/* the template has no placeholder */
	AttrNumber	key_attno;		/* its only placeholder, if that is passed by
								 * value, which settles its text; else 0 */
	AttrNumber	last_attno;		/* the last column that the fence reads */
	bool		pin_settings;	/* a value's text depends on session settings */
	int			max_length;		/* of a name of text and integers alone; else 0 */
} Fence;

extern const Fence *lockfence_trigger_fence(FunctionCallInfo fcinfo);
extern Relation lockfence_open_table(Oid relid, LOCKMODE mode);
extern const Fence *lockfence_relation_fence(Relation rel);
extern FenceCheck lockfence_fence_check(const Fence *fence, Relation rel,
										const char *resource);
extern void lockfence_require_trigger(FunctionCallInfo fcinfo);
extern void lockfence_refuse_setting(const char *argument, const char *detail);

/* readable.c: names that rows give, as far as the caller may read those */
extern bool lockfence_may_read(Relation rel, const Fence *fence);
extern const char *lockfence_readable_resource(const FencedWrite *write);

/* visible.c: what others named, in messages */
extern const char *lockfence_visible(const char *text);

/* record.c: what was fenced, on record */
extern bool lockfence_is_record(Oid relid);
extern bool lockfence_lacks_record(const Fence *fence, Relation rel);
extern bool lockfence_try_record(const Fence *fence, const FencedWrite *write);

/* Can the fence, if there is one, decide on the write, its table being on record?  Refuses it if not. */
static inline bool
lockfence_pass_record(const Fence *fence, const FencedWrite *write)
{
	return fence == NULL || likely(!fence->unrecorded) || lockfence_try_record(fence, write);
}

/* streak.c: rows in a row */
extern bool lockfence_streak_goes_on(const Fence *fence, Datum value,
									 FenceToken shown, FenceToken *accepted);
extern void lockfence_streak_begin(const Fence *fence, Datum value,
								   FenceToken shown, FenceToken accepted);

/* shown.c: the token that a write shows */
/* One call of the row guard, see guard.c. */
typedef struct RowGuard
{
	struct TriggerData *trigger;
	const Fence *fence;
	Relation	rel;
	TupleTableSlot *old;		/* NULL on INSERT */
	TupleTableSlot *new;		/* NULL on DELETE */
	bool		is_half;		/* this DELETE or INSERT is a half ... */
	RowMove		move;			/* ... of that row's move */
	bool		changes_hands;	/* the UPDATE gives the row to another resource */
} RowGuard;

extern FenceToken lockfence_token_in(const RowGuard *guard, HeapTuple tuple);
extern FenceToken lockfence_old_token(const RowGuard *guard);
extern FenceToken lockfence_set_token(const RowGuard *guard, bool *isnull);
extern bool lockfence_column_is_set(const RowGuard *guard);
extern ShownTokens lockfence_presented_tokens(Relation rel, const char *resource);
extern ShownTokens lockfence_row_tokens(const RowGuard *guard, const char *resource);
extern bool lockfence_choose_token(const FencedWrite *write, const ShownTokens *shown,
								   FenceToken *token);
extern void lockfence_settle_missing(const FenceCheck *check);

/* template.c: resource names */
extern AttrNumber lockfence_resolve_column(Relation rel, const char *column);
extern void lockfence_split_template(Fence *fence, const char *template);
extern void lockfence_resolve_template(Fence *fence, Relation rel);
extern char *lockfence_slot_resource(const Fence *fence, Relation rel,
									 TupleTableSlot *slot);
extern char *lockfence_find_resource(const Fence *fence, TupleTableSlot *slot);
extern char *lockfence_values_resource(const Fence *fence, const Datum *values,
									   const bool *missing);
extern char *lockfence_constant_resource(const Fence *fence);
extern bool lockfence_same_resource(const Fence *fence, Relation rel,
									TupleTableSlot *a, TupleTableSlot *b);

/* jsonvalue.c: JSON that a caller gives */
/* One column that a caller names. */
typedef struct GivenColumn
{
	AttrNumber	attno;
	const char *name;
	Oid			type;
	JsonbValue	given;
	Datum		value;			/* ... converted; not before lockfence_convert_columns() */
	bool		isnull;
} GivenColumn;

extern GivenColumn *lockfence_given_columns(Relation rel, Jsonb *object,
											const char *what, int *ncolumns);
extern void lockfence_convert_columns(Relation rel, GivenColumn *columns, int ncolumns);
extern void lockfence_append_key(StringInfo statement, const GivenColumn *key, int param);
extern Jsonb *lockfence_require_jsonb(FunctionCallInfo fcinfo, int argno,
											 const char *what);

/* names.c: which names the fences can make */
typedef enum LockfenceUnknown
{
	LOCKFENCE_UNKNOWN_IGNORE,
	LOCKFENCE_UNKNOWN_NOTICE,
	LOCKFENCE_UNKNOWN_WARNING
} LockfenceUnknown;

extern int	lockfence_unknown_resource;
extern void lockfence_tell_unknown(const char *name);
extern void lockfence_require_no_row(const char *name);
extern void lockfence_read_declared(void);
extern bool lockfence_names_by_column(Oid relid, const char *column);

/* rowmark.c: the mark of one row of a row fence */
extern bool lockfence_sets_row_mark;
extern bool lockfence_admits_row_mark(const RowGuard *guard);
extern TupleTableSlot *lockfence_find_row(Relation rel, const GivenColumn *keys, int nkeys,
										  bool lock, Relation *holder);

/* asowner.c: writing to a table as its owner */
typedef struct FormerSelf
{
	Oid			user;
	int			context;
	int			level;			/* of settings */
} FormerSelf;

extern FormerSelf lockfence_become(Oid owner, const char *path);
extern void lockfence_come_back(FormerSelf self);

/* guarded.c */
extern void lockfence_guarded_init(void);
extern void lockfence_require_any_privilege(Oid relid, AclMode mode);
extern void lockfence_require_column_privileges(Relation rel, AclMode mode, int ncolumns,
												const GivenColumn *columns);

/* ddl.c */
extern void lockfence_ddl_at_xact(XactEvent event);
extern void lockfence_ddl_at_subxact(SubXactEvent event);

/* rows.c */
extern void lockfence_begin_rows(FunctionCallInfo fcinfo);

/* refuse.c: one function a refusal; each returns only on an advisory fence */
extern char *lockfence_row_name(Relation rel, TupleTableSlot *row);
extern void lockfence_refuse_stale(const FencedWrite *write, FenceToken token,
								   FenceToken mark, const char *mark_name);
extern void lockfence_refuse_repeated(const FencedWrite *write, FenceToken token);
extern void lockfence_refuse_old_epoch(const FencedWrite *write,
									   FenceToken token, int epoch);
extern void lockfence_refuse_missing(const FencedWrite *write, const char *hint);
extern void lockfence_refuse_invalid(const FencedWrite *write, bool isnull,
									 FenceToken token);
extern void lockfence_refuse_unknown_epoch(const FencedWrite *write,
										   FenceToken token, int epoch);
extern void lockfence_refuse_sealed(const FencedWrite *write, const char *detail);
extern void lockfence_refuse_unrecorded(const FencedWrite *write, Oid target,
											bool has_tokens);
extern void lockfence_refuse_conflicting(const FencedWrite *write,
										 FenceToken token, const char *token_source,
										 FenceToken other, const char *other_source);
extern void lockfence_refuse_unvalidated(const FencedWrite *write,
										 FenceToken token, Oid validator);
extern void lockfence_refuse_unvouched(const FencedWrite *write, FenceToken token);
extern void lockfence_refuse_unavailable(const FencedWrite *write, FenceToken token,
										 const ErrorData *error);
extern void lockfence_refuse_truncate(const FencedWrite *write);

/* shmem.c: shared memory, in pieces */
typedef enum LockfencePiece
{
	LOCKFENCE_SHARED_LAYOUT,	/* the first */
	LOCKFENCE_SHARED_STATS,
	LOCKFENCE_SHARED_REFUSALS,
	LOCKFENCE_SHARED_HOLDS,
	LOCKFENCE_SHARED_CACHE,
	LOCKFENCE_SHARED_BREAKER,
	LOCKFENCE_SHARED_ENDED
} LockfencePiece;

extern Size lockfence_layout_size(void);
extern void lockfence_layout_init_memory(void *layout);
extern GucContext lockfence_size_context(void);
extern bool lockfence_settle_size(int *newval, int preset);
extern void *lockfence_shared_memory(LockfencePiece piece);
extern void *lockfence_look_at_memory(LockfencePiece piece);
extern bool lockfence_memory_is_attached(void);
extern void lockfence_shmem_init(void);

/* lend.c: what lockfence_validate borrows */
extern Size lockfence_breaker_size(void);
extern void lockfence_breaker_init_memory(void *memory);

/* cache.c: committed marks, in shared memory */
typedef struct CacheLook
{
	struct CacheSet *set;
	uint32		version;		/* of the set */
	uint64		changes;		/* of what the mark is right by (witness.c) */
} CacheLook;

extern uint64 lockfence_cache_witness(void);
extern FenceToken lockfence_cache_find(const ResourceKey *resource, CacheLook *look);
extern bool lockfence_cache_unchanged(const CacheLook *look);
extern void lockfence_cache_put(const ResourceKey *resource, FenceToken token,
								uint64 witness);
extern void lockfence_cache_drop(const ResourceKey *resource);
extern void lockfence_cache_init(void);
extern Size lockfence_cache_size(void);
extern void lockfence_cache_init_memory(void *memory);

/* stats.c: counters, in shared memory; in the order of the columns of _stats() */
typedef enum LockfenceCounter
{
	LOCKFENCE_ACCEPTED,			/* writes let pass by their token */
	LOCKFENCE_ADVANCED,			/* ... that raised a mark */
	LOCKFENCE_STALE,			/* LF001 */
	LOCKFENCE_MISSING,			/* LF002 */
	LOCKFENCE_INVALID,			/* LF003 */
	LOCKFENCE_UNKNOWN_EPOCH,	/* LF004 */
	LOCKFENCE_CONFLICTING,		/* LF006 */
	LOCKFENCE_UNVALIDATED,		/* LF007 */
	LOCKFENCE_UNFENCEABLE,		/* LF009 */
	LOCKFENCE_UNPROTECTED,		/* no token, and the fence allows it */
	LOCKFENCE_ADVISORY,			/* refusals that were only reported */
	LOCKFENCE_ADVISORY_STALE,	/* ... of stale tokens */
	LOCKFENCE_BYPASSED,			/* under lockfence.bypass */
	LOCKFENCE_PREEMPTED,		/* holders ended for an advance */
	LOCKFENCE_VALIDATOR_CALLS,
	LOCKFENCE_VALIDATOR_FAILURES,
	LOCKFENCE_NCOUNTERS_1_0,	/* those of _stats() in 1.0 */
	LOCKFENCE_SEALED = LOCKFENCE_NCOUNTERS_1_0, /* LF005 */
	LOCKFENCE_UNAVAILABLE,		/* LF008 */
	LOCKFENCE_VALIDATOR_OPEN,	/* a yes, for want of somebody to ask */
	LOCKFENCE_NCOUNTERS
} LockfenceCounter;

/* How many refusals of a table were logged of late. */
typedef struct LogWindow
{
	pg_atomic_uint64 start;		/* a timestamp */
	pg_atomic_uint64 logged;	/* since then, or held back */
	pg_atomic_uint64 suppressed;	/* since the last line */
} LogWindow;

extern void lockfence_stats_init(void);
extern Size lockfence_stats_size(void);
extern void lockfence_stats_init_memory(void *memory);
extern bool lockfence_tracks(void);
extern void lockfence_count(Relation rel, LockfenceCounter counter);
extern LogWindow *lockfence_log_window(Relation rel);

/* refusals.c: the ring of the last refusals, and the log */
typedef struct Refusal
{
	LockfenceCounter counter;	/* which refusal */
	int			sqlstate;
	const char *resource;
	FenceToken	token;			/* presented; 0: none */
	FenceToken	mark;			/* what it was compared with; 0: nothing */
} Refusal;

typedef struct RefusalTotals
{
	int64		room;			/* how many are kept */
	int64		recorded;
	int64		overwritten;
} RefusalTotals;

extern void lockfence_refusals_init(void);
extern Size lockfence_refusals_size(void);
extern void lockfence_refusals_init_memory(void *memory);
extern void lockfence_record_refusal(const FencedWrite *write, const Refusal *refusal);
extern RefusalTotals lockfence_refusal_totals(void);
extern void lockfence_forget_refusals(void);

/* events.c: what the server tells, and the rooms that want to know */
extern void lockfence_events_init(void);
extern void lockfence_state_at_relcache(Oid relid);
extern void lockfence_relation_at_relcache(Oid relid);
extern void lockfence_witness_at_relcache(Oid relid);
extern void lockfence_trigarg_at_relcache(Oid relid);
extern void lockfence_witness_at_syscache(int cacheid);
extern void lockfence_validator_at_syscache(int cacheid);
extern void lockfence_hold_at_xact(XactEvent event);
extern void lockfence_holder_at_xact(XactEvent event);
extern void lockfence_timeline_at_xact(XactEvent event);
extern void lockfence_durable_at_xact(XactEvent event);
extern void lockfence_hold_at_subxact(SubXactEvent event);
extern void lockfence_holder_at_subxact(SubXactEvent event);

#define LOCKFENCE_ERRCODE(n) MAKE_SQLSTATE('L', 'F', '0', '0', n)
#define ERRCODE_STALE_FENCE_TOKEN		LOCKFENCE_ERRCODE('1')
#define ERRCODE_MISSING_FENCE_TOKEN		LOCKFENCE_ERRCODE('2')
#define ERRCODE_INVALID_FENCE_TOKEN		LOCKFENCE_ERRCODE('3')
#define ERRCODE_UNKNOWN_FENCE_EPOCH		LOCKFENCE_ERRCODE('4')
#define ERRCODE_FENCE_SEALED			LOCKFENCE_ERRCODE('5')
#define ERRCODE_CONFLICTING_FENCE_TOKENS LOCKFENCE_ERRCODE('6')
#define ERRCODE_FENCE_TOKEN_REFUSED		LOCKFENCE_ERRCODE('7')
#define ERRCODE_FENCE_VALIDATOR_UNAVAILABLE LOCKFENCE_ERRCODE('8')
#define ERRCODE_UNFENCEABLE_OPERATION	LOCKFENCE_ERRCODE('9')

#endif							/* LOCKFENCE_H */
