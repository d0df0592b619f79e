/*
 * loan.c
 *		What the core lends to this library: see lend.h.
 */
#include "postgres.h"

#include "validate.h"

/* The core's loan.  The core is loaded for it if it is not there yet. */
const LockfenceLoan *
lockfence_loan(void)
{
	static const LockfenceLoan *loan = NULL;
	LockfenceLend lend;

	if (loan != NULL)
		return loan;
	lend = (LockfenceLend) load_external_function("$libdir/lockfence", LOCKFENCE_LEND_SYMBOL,
												  false, NULL);
	if (lend == NULL || lend()->layout != LOCKFENCE_LOAN_LAYOUT)
		ereport(ERROR,
				(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
				 errmsg("the server runs a version of lockfence that does not fit lockfence_validate"),
				 errhint("Install both from one version, and restart the server.")));
	loan = lend();
	return loan;
}
