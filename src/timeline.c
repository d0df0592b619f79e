/*
 * timeline.c
 *		The gate: shut when the database's history went back.
 *
 * A point-in-time recovery, or the promotion of a standby that lacks the last of
 * its primary's WAL, takes marks back, and a holder that they kept out could come
 * in again.  PostgreSQL starts a new timeline each time.  So the fence records the
 * timeline under which it knows the database (in a row of lockfence.state, which
 * goes back with everything else there), and looks how the server came from that
 * timeline to the one it writes.
 *
 * A backend's timeline is settled once recovery has ended, so an open gate needs to
 * be looked at once per backend: writes find a flag.  It is open for good if a
 * committed record has the same timeline.  While it is shut, or open though the
 * record differs, each transaction looks again: then reopen() counts at once, and
 * so does a changed setting.
 *
 * If the change is accepted, the record is made to follow it right before the commit
 * of the first transaction that a fence has let pass, so that the record's locks are
 * held for a moment only, and no transaction has to wait for them.  Others go on
 * without: if this transaction fails, the next one does it.  A prepared transaction
 * leaves it to others too, since it would hold the record until its end.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "access/xlog_internal.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "replication/walreceiver.h"
#include "storage/fd.h"
#include "storage/lock.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/snapmgr.h"

#include "check.h"
#include "compat.h"
#include "refuse.h"
#include "relation.h"
#include "rows.h"
#include "shmem.h"
#include "state.h"
#include "timeline.h"
#include "visible.h"

/* What PostgreSQL writes into the history when recovery ends without a target. */
#define NO_TARGET "no recovery target specified"

#define REASON_LEN 256

typedef enum TimelinePolicy
{
	POLICY_AUTO,
	POLICY_SEAL,
	POLICY_WARN,
	POLICY_IGNORE
} TimelinePolicy;

/* How the server came from the recorded timeline to the one it writes. */
typedef enum TimelineEvent
{
	EVENT_NONE,					/* it is the same */
	EVENT_UNRECORDED,			/* none is recorded, as in version 1.0 */
	EVENT_OTHER_SYSTEM,			/* that of another cluster is: pg_upgrade */
	EVENT_PROMOTION,			/* a standby was promoted */
	EVENT_LOSS,					/* ... though it had heard of more WAL */
	EVENT_ARCHIVE,				/* recovery reached the end of an archive */
	EVENT_TARGET,				/* recovery stopped at a point in time */
	EVENT_UNKNOWN				/* the history does not tell */
} TimelineEvent;

static const char *const event_names[] = {
	[EVENT_NONE] = NULL,
	[EVENT_UNRECORDED] = NULL,
	[EVENT_OTHER_SYSTEM] = "other system",
	[EVENT_PROMOTION] = "promotion",
	[EVENT_LOSS] = "promotion with loss",
	[EVENT_ARCHIVE] = "archive recovery",
	[EVENT_TARGET] = "point-in-time recovery",
	[EVENT_UNKNOWN] = "unknown"
};

typedef struct Gate
{
	RecordedTimeline recorded;
	TimeLineID	current;
	TimelineEvent event;
	TimeLineID	left;			/* the timeline that was left, ... */
	XLogRecPtr	left_at;		/* ... where, ... */
	char		reason[REASON_LEN]; /* ... and why, in the history's words */
} Gate;

PG_FUNCTION_INFO_V1(lockfence_gate);
PG_FUNCTION_INFO_V1(lockfence_record_timeline);

static const struct config_enum_entry policies[] = {
	{"auto", POLICY_AUTO, false},
	{"seal", POLICY_SEAL, false},
	{"warn", POLICY_WARN, false},
	{"ignore", POLICY_IGNORE, false},
	{NULL, 0, false}
};

/* setting */
static int	on_timeline_change = POLICY_AUTO;
static int	times_assigned = 0;
static bool setting_is_hidden = false;

bool		lockfence_gate_is_open = false;
static bool open_for_good = false;	/* not only for this transaction */
static uint64 times_forgotten = 0;
static bool record_due = false; /* at the end of this transaction */
static bool has_warned = false;

/* Does the standby that became this server lack WAL that it has heard of? */
static TimelineEvent
judge_promotion(const Gate *gate)
{
	const char *primary = GetConfigOption("primary_conninfo", true, false);
	XLogRecPtr	heard_of;
	XLogRecPtr	received;
	TimeLineID	replayed_tli;

	/* shared memory knows about the recovery with which this server started */
	if (GetXLogReplayRecPtr(&replayed_tli) != gate->left_at || replayed_tli != gate->left)
		return EVENT_PROMOTION;
	SpinLockAcquire(&WalRcv->mutex);
	heard_of = WalRcv->latestWalEnd;
	SpinLockRelease(&WalRcv->mutex);
	if (XLogRecPtrIsInvalid(heard_of))
		return primary == NULL || primary[0] == '\0' ? EVENT_ARCHIVE : EVENT_PROMOTION;
	received = Max(GetWalRcvFlushRecPtr(NULL, NULL), GetWalRcvWriteRecPtr());
	return heard_of > Max(received, gate->left_at) ? EVENT_LOSS : EVENT_PROMOTION;
}

/*
 * Take a line of the history, "TLI <tab> LSN <tab> reason", into account if it is
 * about a switch since the recorded timeline.  A point in time takes precedence over
 * later switches.
 */
static void
note_switch(Gate *gate, const char *line)
{
	unsigned int tli,
				high,
				low;
	int			length = 0;

	if (sscanf(line, "%u\t%X/%X\t%n", &tli, &high, &low, &length) < 3 || length == 0)
		return;
	if (tli == gate->recorded.timeline)
		gate->event = EVENT_PROMOTION;
	else if (gate->event == EVENT_UNKNOWN)
		return;
	if (gate->event == EVENT_TARGET)
		return;
	gate->left = tli;
	gate->left_at = (uint64) high << 32 | low;
	strlcpy(gate->reason, line + length, REASON_LEN);
	gate->reason[strcspn(gate->reason, "\r\n")] = '\0';
	if (strcmp(gate->reason, NO_TARGET) != 0)
		gate->event = EVENT_TARGET;
}

/* Read in the history of the current timeline how the server came to it. */
static void
read_history(Gate *gate)
{
	char		path[MAXPGPATH];
	char		line[MAXPGPATH];
	FILE	   *file;

	gate->event = EVENT_UNKNOWN;
	TLHistoryFilePath(path, gate->current);
	file = AllocateFile(path, "r");
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL)
		note_switch(gate, line);
	FreeFile(file);
	if (gate->event == EVENT_PROMOTION)
		gate->event = judge_promotion(gate);
}

/* Look at the gate.  Not during recovery, which writes no timeline. */
static Gate
read_gate(void)
{
	Gate		gate = {.recorded = lockfence_state_timeline()};

	/*
	 * reopen() commits a minimum together with the record.  The cached minimum
	 * may be older than the record that was just read.
	 */
	lockfence_state_forget();
	gate.current = GetWALInsertionTimeLine();
	if (!gate.recorded.found)
		gate.event = EVENT_UNRECORDED;
	else if (gate.recorded.other_system)
		gate.event = EVENT_OTHER_SYSTEM;
	else if (gate.recorded.timeline != gate.current)
		read_history(&gate);
	return gate;
}

/* Does such an event shut the gate? */
static bool
is_sealed(const Gate *gate)
{
	if (gate->event < EVENT_PROMOTION)
		return false;
	return on_timeline_change == POLICY_SEAL || setting_is_hidden ||
		(on_timeline_change == POLICY_AUTO && gate->event != EVENT_PROMOTION);
}

/* The change in a sentence. */
static char *
describe_change(const Gate *gate)
{
	const char *reason = gate->event == EVENT_LOSS ? "its primary had written WAL that it never received" :
		gate->event == EVENT_ARCHIVE ? "recovery came to the end of the archive" : gate->reason;

	if (gate->event == EVENT_OTHER_SYSTEM)
		return pstrdup("The record of the timeline is another system's, as after pg_upgrade.");
	if (gate->event == EVENT_UNKNOWN)
		return psprintf("The database went from timeline %u to %u, in a way that the history of timeline %u does not tell.",
						gate->recorded.timeline, gate->current, gate->current);
	return psprintf("The database went from timeline %u to %u. It left timeline %u at %X/%X by %s: %s.",
					gate->recorded.timeline, gate->current, gate->left,
					(uint32) (gate->left_at >> 32), (uint32) gate->left_at,
					event_names[gate->event], lockfence_visible(reason));
}

/* Report an accepted change; as a warning, once per backend. */
static void
report_change(const Gate *gate)
{
	if (has_warned || gate->event == EVENT_OTHER_SYSTEM || on_timeline_change == POLICY_IGNORE)
		return;
	has_warned = true;
	ereport(WARNING,
			(errmsg("the database has changed its timeline, and marks may have gone back"),
			 errdetail("%s", describe_change(gate)),
			 errhint("Unless no acknowledged commit was lost, raise the lock service's epoch and call lockfence.set_epoch(), or call lockfence.reopen(floor, reason).")));
}

/*
 * Read the gate, and open it if all is well; returns whether it is shut.  If the
 * record changed meanwhile, the result counts for this look alone.
 */
static bool
look_at_gate(Gate *gate)
{
	uint64		before = times_forgotten;

	*gate = read_gate();
	if (times_forgotten != before)
		return is_sealed(gate);
	if (gate->event == EVENT_UNRECORDED)
		lockfence_gate_is_open = open_for_good = true;
	else if (gate->event == EVENT_NONE)
		/* a reopen() in this transaction may still be rolled back */
		lockfence_gate_is_open = open_for_good = !gate->recorded.uncommitted;
	return is_sealed(gate);
}

/* The gate is not known to be open: look, and refuse the write if it is shut. */
bool
lockfence_try_gate(const FencedWrite *write)
{
	Gate		gate;

	/* a standby refuses writes by itself */
	if (RecoveryInProgress())
		return true;
	/* a row fence needs no shared memory, but must not go on without it either */
	lockfence_require_own_memory();
	if (look_at_gate(&gate))
	{
		lockfence_refuse_sealed(write, describe_change(&gate));
		return false;
	}
	if (gate.event >= EVENT_OTHER_SYSTEM)
	{
		report_change(&gate);
		/* an advisory fence leaves what may fail the commit to others */
		lockfence_gate_is_open = true;
		record_due |= !write->advisory;
	}
	return true;
}

/* Is every write refused?  For advice only. */
bool
lockfence_gate_is_sealed(void)
{
	Gate		gate;

	return !lockfence_gate_is_open && !RecoveryInProgress() && look_at_gate(&gate);
}

/* A relcache entry has changed: look at the gate again, if it may be the table's. */
void
lockfence_timeline_at_relcache(Oid relid)
{
	if (!lockfence_is_state(relid))
		return;
	lockfence_gate_is_open = open_for_good = false;
	times_forgotten++;
}

/* Write a row of lockfence.admin_log, as its owner. */
static void
log_change(const Gate *gate)
{
	static const Oid types[] = {INT8OID, INT8OID, TEXTOID};
	Datum		values[] = {
		Int64GetDatum((int64) gate->recorded.timeline),
		Int64GetDatum((int64) gate->current),
		CStringGetTextDatum(describe_change(gate))
	};
	Relation	rel = lockfence_open_relation("admin_log", AccessShareLock);
	Oid			role;
	int			context;

	GetUserIdAndSecContext(&role, &context);
	SetUserIdAndSecContext(rel->rd_rel->relowner, context | SECURITY_LOCAL_USERID_CHANGE);
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	if (SPI_execute_with_args("SELECT lockfence._log('timeline', NULL, $1, $2, $3)", 3,
							  (Oid *) types, values, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not write to lockfence.admin_log");
	SPI_finish();
	PopActiveSnapshot();
	SetUserIdAndSecContext(role, context);
	table_close(rel, NoLock);
}

/* Record an accepted change, unless another session is doing so. */
static void
record_change(void)
{
	Gate		gate;

	if (XactReadOnly)
		return;
	gate = read_gate();
	if (gate.event < EVENT_OTHER_SYSTEM || is_sealed(&gate) ||
		!lockfence_state_try_timeline(&gate.recorded, gate.current))
		return;
	log_change(&gate);
	ereport(LOG,
			(errmsg("fences of database \"%s\" continue on timeline %u",
					lockfence_visible(get_database_name(MyDatabaseId)), gate.current),
			 errdetail("%s", describe_change(&gate))));
}

/* The end of the transaction. */
void
lockfence_timeline_at_xact(XactEvent event)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			if (record_due)
				record_change();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			record_due = false;
			lockfence_gate_is_open = open_for_good;
			break;
		default:
			break;
	}
}

static void
assign_policy(int value, void *extra)
{
	times_assigned++;
	setting_is_hidden = false;
}

/* Called once per backend, or by the postmaster. */
void
lockfence_timeline_init(void)
{
	bool		was_set = GetConfigOption("lockfence.on_timeline_change", true, false) != NULL;

	/* no session may set it, since a timeline that one session accepts is accepted for all */
	DefineCustomEnumVariable("lockfence.on_timeline_change",
							 "Sets what fences do when the database's timeline has changed.",
							 "auto: seal after a recovery to a point in time or with a visible loss, and warn after a promotion.",
							 &on_timeline_change, POLICY_AUTO, policies, PGC_SIGHUP, 0,
							 NULL, assign_policy, NULL);
	/* a client has replaced the server's setting by its own, see validator.c */
	setting_is_hidden = was_set && times_assigned == 1;
}

/* The state of the gate as a word. */
static const char *
gate_state(const Gate *gate)
{
	if (gate->event == EVENT_UNRECORDED)
		return "off";
	if (gate->event == EVENT_NONE)
		return "open";
	return is_sealed(gate) ? "sealed" : "changed";
}

/* gate(): the recorded timeline, the one that is written, and the resulting state */
Datum
lockfence_gate(PG_FUNCTION_ARGS)
{
	Gate		gate;
	const char *state = "standby";
	Datum		values[6];
	bool		isnull[6] = {false};

	if (RecoveryInProgress())
	{
		gate = (Gate) {.recorded = lockfence_state_timeline()};
		(void) GetXLogReplayRecPtr(&gate.current);
	}
	else
	{
		gate = read_gate();
		state = gate_state(&gate);
	}
	values[0] = CStringGetTextDatum(state);
	isnull[1] = !gate.recorded.found || gate.recorded.other_system;
	values[1] = Int64GetDatum((int64) gate.recorded.timeline);
	values[2] = Int64GetDatum((int64) gate.current);
	isnull[3] = event_names[gate.event] == NULL;
	values[3] = isnull[3] ? (Datum) 0 : CStringGetTextDatum(event_names[gate.event]);
	isnull[4] = isnull[5] = gate.left == 0;
	values[4] = LSNGetDatum(gate.left_at);
	values[5] = CStringGetTextDatum(gate.reason);
	PG_RETURN_DATUM(lockfence_return_row(fcinfo, values, isnull));
}

/*
 * _record_timeline(): record the timeline that is written.  The caller has made
 * sure that stale holders stay out, or that there are none.
 */
Datum
lockfence_record_timeline(PG_FUNCTION_ARGS)
{
	RecordedTimeline before;

	PreventCommandIfReadOnly("lockfence.reopen()");
	before = lockfence_state_set_timeline(GetWALInsertionTimeLine());
	if (!before.found || before.other_system)
		PG_RETURN_NULL();
	PG_RETURN_INT64((int64) before.timeline);
}
