/*
 * validate.h
 *		The types and prototypes that the files of lockfence_validate share.
 */
#ifndef LOCKFENCE_VALIDATE_H
#define LOCKFENCE_VALIDATE_H

#include "answer.h"
#include "compat.h"
#include "api.h"
#include "lockfence.h"

/*
 * Why the lock service was not asked, or did not answer.  A token may pass
 * unasked only for trouble that is not this server's own, and only a failure of
 * the service opens the breaker.
 */
typedef enum Trouble
{
	TROUBLE_NONE,
	TROUBLE_SETTINGS,			/* this server is not set up to ask */
	TROUBLE_BREAKER,			/* no session asks for now */
	TROUBLE_QUESTION,			/* the service refuses this question */
	TROUBLE_SERVICE				/* it is down, or its answer is invalid */
} Trouble;

typedef struct Report
{
	Trouble		trouble;
	char		detail[512];
} Report;

/* settings.c */
typedef struct Settings
{
	char	   *url;
	char	   *ca_file;
	char	   *cert_file;
	char	   *key_file;
	char	   *resolve;
	int			timeout;		/* milliseconds, as all times here */
	int			connect_timeout;
	int			breaker_failures;
	int			breaker_reset;
	bool		open;			/* without an answer a token passes */
} Settings;

extern Settings lockfence_settings;
extern void lockfence_define_settings(void);
extern uint64 lockfence_settings_generation(void);
extern bool lockfence_settings_complete(Report *report);
extern bool lockfence_trouble(Report *report, Trouble trouble, const char *format,...)
			pg_attribute_printf(3, 4);
extern bool lockfence_url_is_secure(void);

/* coreapi.c: the core's API */
extern const LockfenceApi *lockfence_core_api(void);

/* breaker.c: whether this backend may ask, while the service may be down */
typedef enum Verdict
{
	VERDICT_NONE,				/* the request was cancelled */
	VERDICT_GOOD,				/* the service answers */
	VERDICT_BAD
} Verdict;

extern bool lockfence_breaker_enter(uint64 deadline, Report *report);
extern void lockfence_breaker_leave(Verdict verdict);

/* connection.c: the connection to the service */
extern void lockfence_open_connection(void);
extern void lockfence_close_connection(void);

/* request.c: one question */
extern bool lockfence_prepare(const Question *question, Report *report);
extern bool lockfence_ask(const Question *question, uint64 deadline,
						  Answer *answer, Report *report);

/* wait.c: waiting for the service */
extern uint64 lockfence_now_us(void);
extern uint32 lockfence_wait_event(void);

#endif							/* LOCKFENCE_VALIDATE_H */
