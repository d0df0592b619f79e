/*
 * trigarg.h
 *		A fence's settings as the arguments of its triggers.
 */
#ifndef LOCKFENCE_TRIGARG_H
#define LOCKFENCE_TRIGARG_H

#include "datatype/timestamp.h"

/* In the order in which they are written, and of the columns of fence_settings(). */
typedef enum FenceSetting
{
	SETTING_RESOURCE,
	SETTING_TOKEN_COLUMN,
	SETTING_ACCEPT,
	SETTING_ENFORCEMENT,
	SETTING_MISSING,
	SETTING_REPEAT,
	SETTING_VALIDATOR,
	SETTING_ADVISORY_SINCE
} FenceSetting;

/* words of SETTING_ACCEPT */
#define ACCEPT_PRESENTED	"presented"
#define ACCEPT_NAMED		"named"
#define ACCEPT_READ		"read"

#define NSETTINGS (SETTING_ADVISORY_SINCE + 1)

/* Why arguments declare no fence, as the parts of an error. */
typedef struct SettingFault
{
	const char *message;		/* NULL: they do */
	const char *detail;
	const char *hint;			/* or NULL */
} SettingFault;

typedef struct FenceSettings
{
	const char *values[NSETTINGS];	/* NULL: not told, or as by default */
	TimestampTz advisory_since; /* if told */
	SettingFault fault;			/* the first one */
} FenceSettings;

extern void lockfence_read_argument(FenceSettings *settings, const char *argument);
extern char *lockfence_argument_bytes(Datum tgargs, int *length);
extern SettingFault lockfence_template_fault(const char *template);
extern void lockfence_raise_fault(const SettingFault *fault);
extern void lockfence_refuse_setting(const char *argument, const char *detail);

#endif							/* LOCKFENCE_TRIGARG_H */
