/*
 * ended.c
 *		Why a transaction was ended: told in the error that ends it.
 *
 * A backend that is canceled or terminated for an advance learns nothing but
 * that: it is a signal.  So the backend that sends it first leaves a note in the
 * victim's slot in shared memory, and the victim's error says what is there.
 * Without shared memory only the server's log tells, on the other side.
 *
 * A note is of one transaction, and of one error.  Between the note and the
 * signal the transaction may end by itself; the next one, which the signal may
 * hit, has another number and says nothing.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/spin.h"

#include "check.h"
#include "compat.h"
#include "ended.h"
#include "lockfence.h"
#include "shmem.h"
#include "token.h"
#include "visible.h"
#include "xact.h"

/* Longest text kept of a resource name. */
#define KEPT_RESOURCE_LEN 128

typedef struct EndedNote
{
	slock_t		mutex;
	LocalTransactionId lxid;	/* whose it is; InvalidLocalTransactionId: none's */
	int			pid;			/* of the advance */
	FenceToken	token;			/* ... and to what */
	char		resource[KEPT_RESOURCE_LEN];
} EndedNote;

static EndedNote *notes = NULL;
static emit_log_hook_type previous_log_hook = NULL;

/* How much shared memory the notes take, in bytes. */
static Size
memory_size(void)
{
	return mul_size(LOCKFENCE_MAX_BACKENDS, sizeof(EndedNote));
}

/* Make new memory ready for use. */
static void
init_memory(void *memory)
{
	EndedNote  *fresh = (EndedNote *) memory;

	memset(fresh, 0, memory_size());
	for (int i = 0; i < LOCKFENCE_MAX_BACKENDS; i++)
		SpinLockInit(&fresh[i].mutex);
}

const SharedSegment lockfence_ended_segment = {memory_size, init_memory};

/* The note of a slot, or NULL if there is no memory for it. */
static EndedNote *
note_at(int place)
{
	if (notes == NULL)
		notes = lockfence_look_at_memory(&lockfence_ended_segment);
	return notes != NULL && place >= 0 && place < LOCKFENCE_MAX_BACKENDS ? &notes[place] : NULL;
}

/* Leave a note why the backend's transaction is about to be ended. */
void
lockfence_note_end(int pid, const FenceCheck *check)
{
	PGPROC	   *proc = BackendPidGetProc(pid);
	VirtualTransactionId vxid;
	EndedNote  *note;
	char		resource[KEPT_RESOURCE_LEN];

	if (proc == NULL)
		return;
	GET_VXID_FROM_PGPROC(vxid, *proc);
	note = note_at(LOCKFENCE_VXID_BACKEND(vxid));
	if (note == NULL)
		return;
	memset(resource, 0, sizeof(resource));
	memcpy(resource, check->write.resource,
		   pg_mbcliplen(check->write.resource, strlen(check->write.resource), KEPT_RESOURCE_LEN - 1));
	SpinLockAcquire(&note->mutex);
	note->lxid = vxid.localTransactionId;
	note->pid = MyProcPid;
	note->token = check->token;
	memcpy(note->resource, resource, sizeof(resource));
	SpinLockRelease(&note->mutex);
}

/* Take the note for this backend's transaction, if there is one. */
static bool
take_note(EndedNote *copy)
{
	EndedNote  *note = lockfence_memory_is_attached() ? note_at(LOCKFENCE_MY_BACKEND) : NULL;

	if (note == NULL)
		return false;
	SpinLockAcquire(&note->mutex);
	*copy = *note;
	note->lxid = InvalidLocalTransactionId;
	SpinLockRelease(&note->mutex);
	return copy->lxid != InvalidLocalTransactionId &&
		copy->lxid == LOCKFENCE_PROC_LXID(MyProc);
}

/* Is it the error of a backend that was sent a signal, and does not say why? */
static bool
is_unexplained(const ErrorData *edata)
{
	return edata->elevel >= ERROR && edata->detail == NULL && edata->message_id != NULL &&
		(strcmp(edata->message_id, "canceling statement due to user request") == 0 ||
		 strcmp(edata->message_id, "terminating connection due to administrator command") == 0);
}

/*
 * What was held.  Of a name that a row gave, which the session need not be allowed
 * to read, only the other side's log tells: here is no time to look at privileges.
 */
static const char *
describe_resource(const char *resource)
{
	const HeldToken *held = lockfence_held_token(resource);

	return held == NULL || OidIsValid(held->table) ? "the resource of a row" :
		psprintf("resource \"%s\"", lockfence_visible(resource));
}

/*
 * Give an error its detail.  Since 19 the server's log has one of its own for the
 * sender of the signal, in place of what the client is told: it gets both.
 */
static void
set_detail(ErrorData *edata, char *detail)
{
	edata->detail = detail;
	if (edata->detail_log != NULL)
		edata->detail_log = psprintf("%s\n%s", detail, edata->detail_log);
}

/*
 * Have an error say that the transaction gave way to an advance, if it did.
 * The hook of the server's log sees an error before the client does; where errors
 * are not logged, it says nothing.
 */
static void
explain_end(ErrorData *edata)
{
	EndedNote	note;

	if (!is_unexplained(edata) || !take_note(&note))
		return;
	set_detail(edata,
			   psprintf("The transaction held %s by a stale token. It gave way to process %d, which advances the mark to token %s.",
						describe_resource(note.resource), note.pid, lockfence_token_text(note.token)));
	if (edata->hint == NULL)
		edata->hint = pstrdup("The lock has since been granted to another holder. Stop the work done under this grant; acquire the lock again and present its new token.");
}

static void
explain_in_log(ErrorData *edata)
{
	explain_end(edata);
	if (previous_log_hook)
		previous_log_hook(edata);
}

/* Called once per backend, or by the postmaster. */
void
lockfence_ended_init(void)
{
	previous_log_hook = emit_log_hook;
	emit_log_hook = explain_in_log;
}
