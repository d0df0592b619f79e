/*
 * instant.c
 *		Instants, as callers give them: until when a token counts.
 */
#include "postgres.h"

#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "instant.h"

/* An instant as a limit, where 0 means none; infinity is none as well. */
TimestampTz
lockfence_limit_at(TimestampTz instant)
{
	if (TIMESTAMP_IS_NOEND(instant))
		return 0;
	return instant == 0 ? 1 : instant;
}

/* Is the text of the form YYYY-MM-DDThh..., with a time zone, so that no setting of the session has a say in it? */
static bool
is_complete(const char *text)
{
	return strlen(text) > 11 && strspn(text, "0123456789-:.+TZ") == strlen(text) &&
		text[4] == '-' && text[7] == '-' && text[10] == 'T' && strpbrk(text + 11, "Z+-") != NULL;
}

/* Read an instant as ISO 8601 has it; false: it is none. */
bool
lockfence_read_instant(const char *text, TimestampTz *instant)
{
	char		buffer[MAXDATELEN + MAXDATEFIELDS];
	char	   *field[MAXDATEFIELDS];
	int			ftype[MAXDATEFIELDS];
	int			nfields;
	int			dtype;
	int			tz;
	fsec_t		fsec;
	struct pg_tm tm;

	if (!is_complete(text) ||
		ParseDateTime(text, buffer, sizeof(buffer), field, ftype, MAXDATEFIELDS, &nfields) != 0 ||
		lockfence_decode_datetime(field, ftype, nfields, &dtype, &tm, &fsec, &tz) != 0 ||
		dtype != DTK_DATE || tm2timestamp(&tm, fsec, &tz, instant) != 0)
		return false;
	*instant = lockfence_limit_at(*instant);
	return true;
}
