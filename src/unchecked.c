/*
 * unchecked.c
 *		Ambient tokens that were compared with no mark, told at commit.
 *
 * An ambient token is compared where a fence decides on a write.  If the statements
 * on fenced tables find no row, no fence is asked, and a stale holder that goes on
 * to write elsewhere would take that for acceptance.
 *
 * What has an xid has written, or has locked rows.  Whether it has written a row of
 * a table is known to the statistics of the server only, which may be off, and the
 * order of which changes from version to version.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "utils/guc.h"

#include "advisory.h"
#include "lockfence.h"
#include "refuse.h"
#include "unchecked.h"
#include "xact.h"

typedef enum UncheckedToken
{
	UNCHECKED_IGNORE,
	UNCHECKED_WARNING,
	UNCHECKED_ERROR
} UncheckedToken;

static const struct config_enum_entry unchecked_token_options[] = {
	{"ignore", UNCHECKED_IGNORE, false},
	{"warning", UNCHECKED_WARNING, false},
	{"error", UNCHECKED_ERROR, false},
	{NULL, 0, false}
};

static int	unchecked_token = UNCHECKED_WARNING;

/* Called once per backend, or by the postmaster. */
void
lockfence_unchecked_init(void)
{
	DefineCustomEnumVariable("lockfence.unchecked_token",
							 "Sets what happens at commit if a token of present(token) was compared with no mark.",
							 "In a transaction that has written.",
							 &unchecked_token, UNCHECKED_WARNING,
							 unchecked_token_options, PGC_USERSET, 0, NULL, NULL, NULL);
}

/* The transaction is about to commit, or to be prepared. */
void
lockfence_unchecked_at_xact(XactEvent event)
{
	FenceToken	token;

	if (unchecked_token == UNCHECKED_IGNORE ||
		!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return;
	token = lockfence_unchecked_token();
	if (token != 0)
		lockfence_refuse_unchecked(token, unchecked_token == UNCHECKED_WARNING || lockfence_is_advisory(NULL));
}
