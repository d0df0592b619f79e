/*
 * settings.c
 *		Where the lock service is, and how it is asked.
 *
 * All of it comes from the server's configuration and from nobody else.  The
 * library is loaded by the first call of a session, so a session may have set
 * what was a mere placeholder until then: the contexts below have PostgreSQL
 * throw that away when the setting is defined.  Where such a value had taken the
 * place of the server's, the setting is then empty, and nothing is asked.
 *
 * What a setting says is judged when it is used and not when it is read: most
 * backends that read it do not know this library.
 */
#include "postgres.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "utils/guc.h"

#include "validate.h"

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

/* Called once a backend. */
void
lockfence_define_settings(void)
{
	define_text("lockfence_validate.url",
				"The lock service's validate endpoint.", &lockfence_settings.url);
	define_text("lockfence_validate.ca_file",
				"The certificates of authority that the lock service's is checked against.",
				&lockfence_settings.ca_file);
	define_text("lockfence_validate.cert_file",
				"The certificate that is shown to the lock service.", &lockfence_settings.cert_file);
	define_text("lockfence_validate.key_file",
				"The private key of that certificate.", &lockfence_settings.key_file);
	define_text("lockfence_validate.resolve",
				"The address of the lock service, as host:port:address.", &lockfence_settings.resolve);
	define_time("lockfence_validate.timeout",
				"How long asking the lock service may take, all in all.",
				&lockfence_settings.timeout, 2000);
	define_time("lockfence_validate.connect_timeout",
				"How long connecting to the lock service may take.",
				&lockfence_settings.connect_timeout, 1000);
	define_time("lockfence_validate.breaker_reset",
				"How long the lock service is left alone before one request tries it again.",
				&lockfence_settings.breaker_reset, 10000);
	DefineCustomIntVariable("lockfence_validate.breaker_failures",
							"After how many failures in a row the lock service is left alone.",
							"0: it never is.",
							&lockfence_settings.breaker_failures, 5, 0, INT_MAX,
							PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomEnumVariable("lockfence_validate.on_unavailable",
							 "What becomes of a token when the lock service cannot be asked.",
							 "closed: the write is refused. open: the token passes.",
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

/* Note what stands in the way; returns false, for the caller to return too. */
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

/* A literal address of this machine; a name could come to mean another. */
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

/* What is wrong with the URL, in a form to follow its name; NULL: nothing. */
static const char *
url_problem(CURLU *url)
{
	char	   *host;
	bool		local;

	if (curl_url_set(url, CURLUPART_URL, lockfence_settings.url, 0) != CURLUE_OK)
		return "is not a URL";
	if (url_has(url, CURLUPART_USER) || url_has(url, CURLUPART_PASSWORD))
		return "carries a user or a password, and a setting is no place for secrets";
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
	const char *problem = url != NULL ? url_problem(url) : "cannot be read for want of memory";
	bool		pinned = problem != NULL || lockfence_settings.resolve[0] == '\0' || is_pinned(url);

	curl_url_cleanup(url);
	if (problem != NULL)
		return lockfence_trouble(report, TROUBLE_SETTINGS, "lockfence_validate.url %s.", problem);
	if (!pinned)
		return lockfence_trouble(report, TROUBLE_SETTINGS,
								 "lockfence_validate.resolve is not host:port:address with the host and port of lockfence_validate.url.");
	return true;
}

/* Who writes to a table is not told where the files are. */
static bool
check_file(const char *setting, const char *path, struct stat *status, Report *report)
{
	if (stat(path, status) != 0 || access(path, R_OK) != 0)
		return lockfence_trouble(report, TROUBLE_SETTINGS, "The file of %s cannot be read: %s.",
								 setting, strerror(errno));
	return true;
}

/* The key must be nobody else's to read. */
static bool
check_key(Report *report)
{
	struct stat status;

	if (!check_file("lockfence_validate.key_file", lockfence_settings.key_file, &status, report))
		return false;
	if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
		(status.st_mode & (S_IRWXG | S_IRWXO | S_IXUSR)) != 0)
		return lockfence_trouble(report, TROUBLE_SETTINGS,
								 "The file of lockfence_validate.key_file is not a regular file of the server's user with permissions 0600 or less.");
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
								 "Of lockfence_validate.cert_file and lockfence_validate.key_file only one is set.");
	if (!check_file("lockfence_validate.ca_file", lockfence_settings.ca_file, &status, report))
		return false;
	return lockfence_settings.cert_file[0] == '\0' ||
		(check_file("lockfence_validate.cert_file", lockfence_settings.cert_file, &status, report) &&
		 check_key(report));
}

/* Do the settings say whom to ask, and safely? */
bool
lockfence_settings_complete(Report *report)
{
	if (lockfence_settings.url[0] == '\0')
		return lockfence_trouble(report, TROUBLE_SETTINGS, "lockfence_validate.url is not set.");
	return check_url(report) && (!lockfence_url_is_secure() || check_files(report));
}
