/*
 * settings.h
 *		Which service to ask; and why it was not asked, or gave no answer.
 */
#ifndef LOCKFENCE_VALIDATE_SETTINGS_H
#define LOCKFENCE_VALIDATE_SETTINGS_H

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

#endif							/* LOCKFENCE_VALIDATE_SETTINGS_H */
