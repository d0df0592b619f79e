/*
 * compat.h
 *		Every PostgreSQL version test of the project.
 *
 * The other files are written against the newest API; each shim says which
 * change it bridges.
 */
#ifndef LOCKFENCE_COMPAT_H
#define LOCKFENCE_COMPAT_H

#include "access/genam.h"
#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/sinvaladt.h"
#include "utils/guc.h"
#include "utils/rel.h"

#if PG_VERSION_NUM < 130000
#error "lockfence needs PostgreSQL 13 or later"
#endif

/* 14 can pin a page that is where it was; 16 renamed what names its file. */
static inline bool
lockfence_read_recent_buffer(Relation rel, BlockNumber block, Buffer buffer)
{
#if PG_VERSION_NUM >= 160000
	return ReadRecentBuffer(rel->rd_locator, MAIN_FORKNUM, block, buffer);
#elif PG_VERSION_NUM >= 140000
	return ReadRecentBuffer(rel->rd_node, MAIN_FORKNUM, block, buffer);
#else
	return false;
#endif
}

/* 18 counts an index scan for whom it may concern; 19 added flags. */
static inline IndexScanDesc
lockfence_index_beginscan(Relation rel, Relation index, Snapshot snapshot, int nkeys)
{
#if PG_VERSION_NUM >= 190000
	return index_beginscan(rel, index, snapshot, NULL, nkeys, 0, 0);
#elif PG_VERSION_NUM >= 180000
	return index_beginscan(rel, index, snapshot, NULL, nkeys, 0);
#else
	return index_beginscan(rel, index, snapshot, nkeys, 0);
#endif
}

/* 19 added flags to the scan of a table as well. */
static inline TableScanDesc
lockfence_table_beginscan(Relation rel, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan(rel, snapshot, 0, NULL, 0);
#else
	return table_beginscan(rel, snapshot, 0, NULL);
#endif
}

/* 19 tells the visibility map what pruning has found. */
static inline void
lockfence_prune_page(Relation rel, Buffer buffer)
{
#if PG_VERSION_NUM >= 190000
	Buffer		visibility = InvalidBuffer;

	heap_page_prune_opt(rel, buffer, &visibility, false);
	if (BufferIsValid(visibility))
		ReleaseBuffer(visibility);
#else
	heap_page_prune_opt(rel, buffer);
#endif
}

/* 14 moved the backend status array and the wait events out of pgstat.h. */
#if PG_VERSION_NUM >= 140000
#include "utils/backend_status.h"
#include "utils/wait_event.h"
#else
#include "pgstat.h"
#endif

/* 14 can open a table that may be gone by then. */
#if PG_VERSION_NUM < 140000
#include "access/relation.h"
#define try_table_open(relid, mode) try_relation_open(relid, mode)
#endif

/* 14 made string keys something to ask for; before, they were the default. */
#if PG_VERSION_NUM < 140000
#define HASH_STRINGS 0
#endif

/*
 * 17 brought shared memory that needs no preloading; 19 added an argument to
 * it.  Before, it is asked for at preload, since 15 in a hook.
 */
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#define LOCKFENCE_HAS_DSM_REGISTRY
#define LOCKFENCE_OTHER_SIZE "requested DSM segment size does not match size of existing segment"
#endif
#if PG_VERSION_NUM >= 190000
#define LOCKFENCE_NAMED_SEGMENT(name, size, init, found) \
	GetNamedDSMSegment(name, size, init, found, NULL)
#define LOCKFENCE_SEGMENT_INIT_ARGS void *segment, void *arg
#else
#define LOCKFENCE_NAMED_SEGMENT(name, size, init, found) \
	GetNamedDSMSegment(name, size, init, found)
#define LOCKFENCE_SEGMENT_INIT_ARGS void *segment
#endif
#if PG_VERSION_NUM >= 150000
#define LOCKFENCE_HAS_SHMEM_REQUEST_HOOK
#endif

/* 16 gave the settings' hooks a header of their own. */
#if PG_VERSION_NUM >= 160000
#include "utils/guc_hooks.h"
#else
#include "replication/syncrep.h"
#endif

/* 16 renamed the look at a backend's status. */
#if PG_VERSION_NUM < 160000
#define pgstat_get_local_beentry_by_index(index) pgstat_fetch_stat_local_beentry(index)
#endif

/* 16 has what reads a date tell more of its errors. */
#if PG_VERSION_NUM >= 160000
#define lockfence_decode_datetime(field, ftype, nf, dtype, tm, fsec, tzp) \
	DecodeDateTime(field, ftype, nf, dtype, tm, fsec, tzp, &(DateTimeErrorExtra) {0})
#else
#define lockfence_decode_datetime(field, ftype, nf, dtype, tm, fsec, tzp) \
	DecodeDateTime(field, ftype, nf, dtype, tm, fsec, tzp)
#endif

/* 15 reserves a prefix; before, placeholders could only be warned about. */
#if PG_VERSION_NUM < 150000
#define MarkGUCPrefixReserved(prefix) EmitWarningsOnPlaceholders(prefix)
#endif

/* 17 made wait events of extensions nameable, and a set of events a resource. */
#if PG_VERSION_NUM >= 170000
#define LOCKFENCE_NEW_WAIT_EVENT(name) WaitEventExtensionNew(name)
#define LOCKFENCE_CREATE_WAIT_SET(size) CreateWaitEventSet(NULL, size)
#else
#define LOCKFENCE_NEW_WAIT_EVENT(name) PG_WAIT_EXTENSION
#define LOCKFENCE_CREATE_WAIT_SET(size) CreateWaitEventSet(CurrentMemoryContext, size)
#endif

/*
 * 17 replaced the backend id by the proc number and grouped the vxid.  A backend's
 * number is that from 0 by which a virtual transaction names it.
 */
#if PG_VERSION_NUM >= 170000
#define LOCKFENCE_VXID_HAS_BACKEND(vxid) ((vxid).procNumber != INVALID_PROC_NUMBER)
#define LOCKFENCE_VXID_PROC(vxid) ProcNumberGetProc((vxid).procNumber)
#define LOCKFENCE_PROC_LXID(proc) ((proc)->vxid.lxid)
#define LOCKFENCE_SET_VXID(vxid, number, lxid) \
	((vxid).procNumber = (number), (vxid).localTransactionId = (lxid))
#define LOCKFENCE_GET_LOCK_VXID(to, lock) ((to) = (lock)->vxid)
#define LOCKFENCE_VXID_BACKEND(vxid) ((vxid).procNumber)
#define LOCKFENCE_MY_BACKEND MyProcNumber
#else
#define LOCKFENCE_VXID_HAS_BACKEND(vxid) ((vxid).backendId != InvalidBackendId)
#define LOCKFENCE_VXID_PROC(vxid) BackendIdGetProc((vxid).backendId)
#define LOCKFENCE_PROC_LXID(proc) ((proc)->lxid)
#define LOCKFENCE_SET_VXID(vxid, number, lxid) \
	((vxid).backendId = (number) + 1, (vxid).localTransactionId = (lxid))
#define LOCKFENCE_GET_LOCK_VXID(to, lock) \
	((to).backendId = (lock)->backend, (to).localTransactionId = (lock)->lxid)
#define LOCKFENCE_VXID_BACKEND(vxid) ((vxid).backendId - 1)
#define LOCKFENCE_MY_BACKEND (MyBackendId - 1)
#endif

/*
 * 15 moved what is of recovery into a header of its own, and asks for the
 * timeline that is written by a function.  Before, RecoveryInProgress() sets it
 * once it says no.
 */
#if PG_VERSION_NUM >= 150000
#include "access/xlogrecovery.h"
#else
#define GetWALInsertionTimeLine() ThisTimeLineID
#endif

/* Before 15 the number of backends was computed after libraries are preloaded. */
#if PG_VERSION_NUM >= 150000
#define LOCKFENCE_MAX_BACKENDS MaxBackends
#else
#include "postmaster/autovacuum.h"
#include "postmaster/bgworker_internals.h"
#include "replication/walsender.h"
#define LOCKFENCE_MAX_BACKENDS \
	(MaxConnections + autovacuum_max_workers + 1 + max_worker_processes + max_wal_senders)
#endif

/* 14 named the predefined role constants after the roles. */
#if PG_VERSION_NUM >= 140000
#define LOCKFENCE_SIGNAL_BACKEND_ROLE ROLE_PG_SIGNAL_BACKEND
#else
#define LOCKFENCE_SIGNAL_BACKEND_ROLE DEFAULT_ROLE_SIGNAL_BACKENDID
#endif

/* 16 has one function each for the owners, and the privileges, of all kinds of objects. */
#if PG_VERSION_NUM >= 160000
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "utils/acl.h"
#define lockfence_owns_relation(relid, role) object_ownercheck(RelationRelationId, relid, role)
#define lockfence_may_execute(function, role) \
	(object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE) == ACLCHECK_OK)
#else
#include "utils/acl.h"
#define lockfence_owns_relation(relid, role) pg_class_ownercheck(relid, role)
#define lockfence_may_execute(function, role) \
	(pg_proc_aclcheck(function, role, ACL_EXECUTE) == ACLCHECK_OK)
#endif

/* 14 detaches partitions concurrently, so that one may be half detached. */
#include "catalog/partition.h"
#include "nodes/parsenodes.h"
#if PG_VERSION_NUM >= 140000
#define lockfence_partition_parent(relid) get_partition_parent(relid, true)
#define lockfence_is_detach(command) \
	((command) == AT_DetachPartition || (command) == AT_DetachPartitionFinalize)
#else
#define lockfence_partition_parent(relid) get_partition_parent(relid)
#define lockfence_is_detach(command) ((command) == AT_DetachPartition)
#endif

/* 18 renamed the attribute of functions that do not return, and put it first. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/*
 * 17 brought injection points, of which servers that are not built with them know
 * nothing, and 18 gave them an argument.  Tests stop a session at them.
 */
#if PG_VERSION_NUM >= 180000
#include "utils/injection_point.h"
#define LOCKFENCE_INJECTION_POINT(name) INJECTION_POINT(name, NULL)
#elif PG_VERSION_NUM >= 170000
#include "utils/injection_point.h"
#define LOCKFENCE_INJECTION_POINT(name) INJECTION_POINT(name)
#else
#define LOCKFENCE_INJECTION_POINT(name) ((void) (name))
#endif

#endif							/* LOCKFENCE_COMPAT_H */
