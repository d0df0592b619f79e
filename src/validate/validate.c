/*
 * validate.c
 *		lockfence_validate: asks the lock service whether a token is valid.
 *
 * Module magic and the functions.  A backend loads this library, with libcurl and
 * OpenSSL, by its first call of one of them.
 *
 * The answer is the service's opinion at one moment, not a lock: the fence asks
 * before it takes any lock, and the mark decides all the same.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "answer.h"
#include "breaker.h"
#include "coreapi.h"
#include "lockfence.h"
#include "request.h"
#include "settings.h"
#include "wait.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(lockfence_validate);
PG_FUNCTION_INFO_V1(lockfence_validate_detail);

void		_PG_init(void);

/* The result for the caller. */
typedef struct Validation
{
	bool		asked;			/* if not, only the time is known of the rest */
	Answer		answer;
	uint64		latency_us;
} Validation;

/* A transaction that aborts during a request gives its slot back. */
static void
at_transaction_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT)
		lockfence_breaker_leave(VERDICT_NONE);
}

void
_PG_init(void)
{
	lockfence_define_settings();
	RegisterXactCallback(at_transaction_event, NULL);
}

static const char *
trouble_hint(Trouble trouble)
{
	switch (trouble)
	{
		case TROUBLE_SETTINGS:
			return "Have an administrator set lockfence_validate in the server's configuration, and reload it.";
		case TROUBLE_QUESTION:
			return "Check the name of the resource, and lockfence_validate.url.";
		default:
			return "The token may be valid: try the transaction again when the lock service can be reached.";
	}
}

/* The service did not answer: raise an error, or let the token pass all the same. */
static void
settle_trouble(const char *resource, FenceToken token, const Report *report)
{
	if (lockfence_settings.open && report->trouble != TROUBLE_SETTINGS)
	{
		lockfence_core_api()->count_open();
		ereport(LOG,
				(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
				 errmsg("fencing token " INT64_FORMAT " for resource \"%s\" passes without an answer of the lock service",
						token, lockfence_core_api()->visible(resource)),
				 errdetail_internal("%s", lockfence_core_api()->visible(report->detail))));
		return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
			 errmsg("could not ask the lock service about the fencing token for resource \"%s\"",
					lockfence_core_api()->visible(resource)),
			 errdetail_internal("%s", lockfence_core_api()->visible(report->detail)),
			 errhint("%s", trouble_hint(report->trouble))));
}

/* What the outcome of a request tells about the service. */
static Verdict
verdict_on(Trouble trouble)
{
	switch (trouble)
	{
		case TROUBLE_NONE:
		case TROUBLE_QUESTION:
			return VERDICT_GOOD;
		case TROUBLE_SERVICE:
			return VERDICT_BAD;
		default:
			return VERDICT_NONE;
	}
}

/* Ask, if the settings and the breaker allow it. */
static bool
try_to_ask(const Question *question, Answer *answer, Report *report)
{
	uint64		deadline = lockfence_now_us() + (uint64) lockfence_settings.timeout * 1000;
	bool		answered = false;

	if (!lockfence_settings_complete(report) || !lockfence_prepare(question, report) ||
		!lockfence_breaker_enter(deadline, report))
		return false;
	PG_TRY();
	{
		answered = lockfence_ask(question, deadline, answer, report);
	}
	PG_CATCH();
	{
		lockfence_breaker_leave(VERDICT_NONE);
		PG_RE_THROW();
	}
	PG_END_TRY();
	lockfence_breaker_leave(verdict_on(report->trouble));
	return answered;
}

/* The lock service's opinion of a token. */
static Validation
validate(const char *resource, FenceToken token)
{
	Validation	validation = {0};
	Report		report = {0};
	Question	question = {.token = token};
	uint64		start = lockfence_now_us();

	question.resource = pg_server_to_any(resource, strlen(resource), PG_UTF8);
	question.resource_len = strlen(question.resource);
	validation.asked = try_to_ask(&question, &validation.answer, &report);
	if (!validation.asked)
	{
		settle_trouble(resource, token, &report);
		validation.answer.valid = true;
	}
	validation.latency_us = lockfence_now_us() - start;
	return validation;
}

/* The arguments; both functions are strict. */
static Validation
validate_arguments(FunctionCallInfo fcinfo)
{
	char	   *resource = text_to_cstring(PG_GETARG_TEXT_PP(0));
	FenceToken	token = PG_GETARG_INT64(1);

	if (resource[0] == '\0' || strlen(resource) > LOCKFENCE_MAX_RESOURCE_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("resource name must be 1 to %d bytes long",
						LOCKFENCE_MAX_RESOURCE_LEN)));
	if (token <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FENCE_TOKEN),
				 errmsg("invalid fencing token " INT64_FORMAT, token),
				 errdetail("A token is always greater than zero.")));
	return validate(resource, token);
}

/* validate(resource text, token fence_token) -> boolean */
Datum
lockfence_validate(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(validate_arguments(fcinfo).answer.valid);
}

/* A span of time as an interval. */
static Datum
microseconds(int64 us)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = us;
	return IntervalPGetDatum(interval);
}

/* validate_detail(resource text, token fence_token) -> record */
Datum
lockfence_validate_detail(PG_FUNCTION_ARGS)
{
	Validation	validation = validate_arguments(fcinfo);
	TupleDesc	tupdesc;
	Datum		values[4];
	bool		isnull[4] = {false, !validation.asked, !validation.asked, false};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = BoolGetDatum(validation.answer.valid);
	values[1] = Int32GetDatum(validation.answer.epoch);
	values[2] = microseconds(validation.answer.expires_in_ms * 1000);
	values[3] = microseconds((int64) validation.latency_us);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values, isnull)));
}
