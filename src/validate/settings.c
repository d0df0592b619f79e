/*
 * settings.c
 *		Where the lock service is, and how to ask it.
 *
 * All settings come from the server's configuration and from no session.  A
 * session loads the library by its first call, so it may have set what was a
 * mere placeholder until then; by the contexts below PostgreSQL discards such a
 * value when the setting is defined.  If it had replaced the server's value, the
 * setting is then empty, and the service is not asked.
 *
 * A setting is checked when it is used and not when it is read: most backends
 * that read it have not loaded this library.
 */
#include "postgres.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "utils/guc.h"

#include "compat.h"
#include "settings.h"

Settings	lockfence_settings;

static int	on_unavailable = false;
static uint64 generation = 0;

static const struct config_enum_entry postures[] = {
	{"closed", false, false},
	{"open", true, false},
	{NULL, 0, false}
};

static void
assign_text(const char *value, void *extra)
{
	generation++;
}

static void
assign_number(int value, void *extra)
{
	generation++;
}

static void
assign_posture(int value, void *extra)
{
	lockfence_settings.open = value;
}

static void
define_text(const char *name, const char *description, char **variable)
{
	DefineCustomStringVariable(name, description, NULL, variable, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							   NULL, assign_text, NULL);
}

static void
define_time(const char *name, const char *description, int *variable, int preset)
{
	DefineCustomIntVariable(name, description, NULL, variable, preset, 1, INT_MAX / 1000,
							PGC_SIGHUP, GUC_SUPERUSER_ONLY | GUC_UNIT_MS,
							NULL, assign_number, NULL);
}

/* Called once per backend. */
void
lockfence_define_settings(void)
{
	define_text("lockfence_validate.url",
				"URL at which the lock service validates tokens.", &lockfence_settings.url);
	define_text("lockfence_validate.ca_file",
				"Location of the certificate authority file that verifies the lock service.",
				&lockfence_settings.ca_file);
	define_text("lockfence_validate.cert_file",
				"Location of the client certificate for the lock service.", &lockfence_settings.cert_file);
	define_text("lockfence_validate.key_file",
				"Location of the private key of the client certificate.", &lockfence_settings.key_file);
	define_text("lockfence_validate.resolve",
				"Address of the lock service, as host:port:address.", &lockfence_settings.resolve);
	define_time("lockfence_validate.timeout",
				"Maximum time to wait for an answer of the lock service.",
				&lockfence_settings.timeout, 2000);
	define_time("lockfence_validate.connect_timeout",
				"Maximum time to wait for a connection to the lock service.",
				&lockfence_settings.connect_timeout, 1000);
	define_time("lockfence_validate.breaker_reset",
				"Time after which one request tries a failed lock service again.",
				&lockfence_settings.breaker_reset, 10000);
	DefineCustomIntVariable("lockfence_validate.breaker_failures",
							"Number of failures in a row after which the lock service is not asked any more.",
							"0 always asks it.",
							&lockfence_settings.breaker_failures, 5, 0, INT_MAX,
							PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomEnumVariable("lockfence_validate.on_unavailable",
							 "Decides about a token when the lock service does not answer.",
							 "\"closed\" refuses the write; \"open\" lets the token pass.",
							 &on_unavailable, false, postures,
							 PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, assign_posture, NULL);
	MarkGUCPrefixReserved("lockfence_validate");
}

/* Changes with any setting that a connection was made with. */
uint64
lockfence_settings_generation(void)
{
	return generation;
}

/* Report why there is no answer; returns false, for the caller to return too. */
bool
lockfence_trouble(Report *report, Trouble trouble, const char *format,...)
{
	va_list		args;

	report->trouble = trouble;
	va_start(args, format);
	vsnprintf(report->detail, sizeof(report->detail), format, args);
	va_end(args);
	return false;
}

/* Is the connection to be encrypted? */
bool
lockfence_url_is_secure(void)
{
	return pg_strncasecmp(lockfence_settings.url, "https:", 6) == 0;
}

/* One part of the URL, to be freed by curl_free(); NULL: it has none. */
static char *
url_part(CURLU *url, CURLUPart part)
{
	char	   *text = NULL;

	return curl_url_get(url, part, &text, part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0) == CURLUE_OK ?
		text : NULL;
}

static bool
url_has(CURLU *url, CURLUPart part)
{
	char	   *text = url_part(url, part);

	curl_free(text);
	return text != NULL;
}

/* A literal address of this machine; a name could resolve to another machine. */
static bool
is_loopback(const char *host)
{
	return strcmp(host, "[::1]") == 0 ||
		(strncmp(host, "127.", 4) == 0 && host[strspn(host, "0123456789.")] == '\0');
}

/* Does the pinned address name the host and port of the URL? */
static bool
is_pinned(CURLU *url)
{
	char	   *host = url_part(url, CURLUPART_HOST);
	char	   *port = url_part(url, CURLUPART_PORT);
	char		prefix[512];
	int			len = snprintf(prefix, sizeof(prefix), "%s:%s:", host ? host : "", port ? port : "");
	bool		fits = len < sizeof(prefix) &&
		pg_strncasecmp(lockfence_settings.resolve, prefix, len) == 0 &&
		lockfence_settings.resolve[len] != '\0';

	curl_free(host);
	curl_free(port);
	return fits;
}

/* What is wrong with the URL, to follow the setting's name; NULL: nothing. */
static const char *
url_problem(CURLU *url)
{
	char	   *host;
	bool		local;

	if (curl_url_set(url, CURLUPART_URL, lockfence_settings.url, 0) != CURLUE_OK)
		return "is not a URL";
	if (url_has(url, CURLUPART_USER) || url_has(url, CURLUPART_PASSWORD))
		return "contains a user or a password, but secrets must not be in a setting";
	if (url_has(url, CURLUPART_FRAGMENT))
		return "has a fragment";
	host = url_part(url, CURLUPART_HOST);
	local = host != NULL && is_loopback(host);
	curl_free(host);
	if (!lockfence_url_is_secure() &&
		(pg_strncasecmp(lockfence_settings.url, "http:", 5) != 0 || !local))
		return "is neither https nor http to a loopback address such as 127.0.0.1";
	return NULL;
}

static bool
check_url(Report *report)
{
	CURLU	   *url = curl_url();
	const char *problem = url != NULL ? url_problem(url) : "cannot be parsed: out of memory";
	bool		pinned = problem != NULL || lockfence_settings.resolve[0] == '\0' || is_pinned(url);

	curl_url_cleanup(url);
	if (problem != NULL)
		return lockfence_trouble(report, TROUBLE_SETTINGS, "lockfence_validate.url %s.", problem);
	if (!pinned)
		return lockfence_trouble(report, TROUBLE_SETTINGS,
								 "lockfence_validate.resolve must be host:port:address with the host and port of lockfence_validate.url.");
	return true;
}

/* The message goes to the role that writes, so it does not say where the file is. */
static bool
check_file(const char *setting, const char *path, struct stat *status, Report *report)
{
	if (stat(path, status) != 0 || access(path, R_OK) != 0)
		return lockfence_trouble(report, TROUBLE_SETTINGS, "The file of %s cannot be read: %s.",
								 setting, strerror(errno));
	return true;
}

/* Only the server's user may read the key. */
static bool
check_key(Report *report)
{
	struct stat status;

	if (!check_file("lockfence_validate.key_file", lockfence_settings.key_file, &status, report))
		return false;
	if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
		(status.st_mode & (S_IRWXG | S_IRWXO | S_IXUSR)) != 0)
		return lockfence_trouble(report, TROUBLE_SETTINGS,
								 "The file of lockfence_validate.key_file must be a regular file of the server's user with permissions 0600 or less.");
	return true;
}

static bool
check_files(Report *report)
{
	struct stat status;

	if (lockfence_settings.ca_file[0] == '\0')
		return lockfence_trouble(report, TROUBLE_SETTINGS, "lockfence_validate.ca_file is not set.");
	if ((lockfence_settings.cert_file[0] == '\0') != (lockfence_settings.key_file[0] == '\0'))
		return lockfence_trouble(report, TROUBLE_SETTINGS,
								 "Only one of lockfence_validate.cert_file and lockfence_validate.key_file is set.");
	if (!check_file("lockfence_validate.ca_file", lockfence_settings.ca_file, &status, report))
		return false;
	return lockfence_settings.cert_file[0] == '\0' ||
		(check_file("lockfence_validate.cert_file", lockfence_settings.cert_file, &status, report) &&
		 check_key(report));
}

/* Do the settings name a service, and is it safe to ask it? */
bool
lockfence_settings_complete(Report *report)
{
	if (lockfence_settings.url[0] == '\0')
		return lockfence_trouble(report, TROUBLE_SETTINGS, "lockfence_validate.url is not set.");
	return check_url(report) && (!lockfence_url_is_secure() || check_files(report));
}
