/*
 * line.c
 *		The connection to the lock service: how it is made, kept and closed.
 *
 * A backend keeps its connection from one call to the next, as long as each was
 * answered and the server's configuration was not loaded again; the files that
 * the settings name may have been replaced then.  Anything else closes it.
 *
 * What a deployment could turn against its own safety is fixed here: the service
 * proves who it is, nothing leads the request elsewhere (a redirect, a proxy of the
 * postmaster's environment, an address out of ~/.netrc), and the answer is taken
 * as it comes, uncompressed.
 *
 * curl may start a thread to resolve a name.  A thread inherits the signal mask,
 * and PostgreSQL's handlers must not run in it: every call that could start one is
 * made with all signals blocked.  curl_global_init() happens here too, so in a
 * backend and never in the postmaster, and is never undone.
 *
 * The callbacks are called by curl and must return to it: they neither allocate
 * by palloc() nor raise errors.
 */
#include "postgres.h"

#include <openssl/err.h>
#include <pthread.h>

#include "storage/fd.h"
#include "utils/timestamp.h"

#include "line.h"
#include "validate.h"

static Line line;

/* What the connection was made under. */
static uint64 made_under = 0;
static TimestampTz made_after_reload = 0;

void
lockfence_block_signals(sigset_t *saved)
{
	sigset_t	all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, saved);
}

/* Signals come again; what curl has left with OpenSSL is not for the session's own TLS. */
void
lockfence_restore_signals(const sigset_t *saved)
{
	ERR_clear_error();
	pthread_sigmask(SIG_SETMASK, saved, NULL);
}

/* curl's callbacks: what it waits for */
static int
note_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket)
{
	int			i = 0;

	while (i < line.nsockets && line.sockets[i].fd != fd)
		i++;
	if (what == CURL_POLL_REMOVE)
	{
		if (i < line.nsockets)
			line.sockets[i] = line.sockets[--line.nsockets];
		return 0;
	}
	if (i == MAX_SOCKETS)
	{
		line.overflown = true;
		return 0;
	}
	line.sockets[i] = (LineSocket) {.fd = fd,.what = what};
	line.nsockets = Max(line.nsockets, i + 1);
	return 0;
}

static int
note_timer(CURLM *multi, long timeout_ms, void *arg)
{
	line.timer_at = timeout_ms < 0 ? 0 : lockfence_now_us() + (uint64) timeout_ms * 1000;
	return 0;
}

/* curl's callbacks: what comes */
static size_t
take_header(char *data, size_t size, size_t count, void *arg)
{
	line.headers_len += size * count;
	return line.headers_len <= MAX_HEADERS ? size * count : 0;
}

static size_t
take_body(char *data, size_t size, size_t count, void *arg)
{
	size_t		len = size * count;

	if (len > sizeof(line.body) - line.body_len)
		return 0;
	memcpy(line.body + line.body_len, data, len);
	line.body_len += len;
	return len;
}

/* What every request has in common. */
static bool
set_transport(CURL *easy)
{
	return curl_easy_setopt(easy, CURLOPT_URL, lockfence_settings.url) == CURLE_OK &&
		(lockfence_url_is_secure() ?
		 RESTRICT_PROTOCOLS(easy, "https", CURLPROTO_HTTPS) :
		 RESTRICT_PROTOCOLS(easy, "http", CURLPROTO_HTTP)) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
		QUIT_QUICKLY(easy) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_NETRC, (long) CURL_NETRC_IGNORED) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, NULL) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t) MAX_ANSWER) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_USERAGENT, "lockfence_validate/" LOCKFENCE_VALIDATE_VERSION) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_HTTPHEADER, line.headers) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, line.error) == CURLE_OK;
}

/*
 * Who the service has to be, and who we are.  The empty password keeps OpenSSL
 * from asking the server's terminal for that of an encrypted key.
 */
static bool
set_identity(CURL *easy)
{
	if (!lockfence_url_is_secure())
		return true;
	return (lockfence_settings.resolve[0] == '\0' ||
			curl_easy_setopt(easy, CURLOPT_RESOLVE, line.addresses) == CURLE_OK) &&
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_CAINFO, lockfence_settings.ca_file) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK &&
		(lockfence_settings.cert_file[0] == '\0' ||
		 (curl_easy_setopt(easy, CURLOPT_SSLCERT, lockfence_settings.cert_file) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_SSLKEY, lockfence_settings.key_file) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "") == CURLE_OK));
}

static bool
set_multi(CURLM *multi)
{
	return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, note_socket) == CURLM_OK &&
		curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, note_timer) == CURLM_OK &&
		curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 1L) == CURLM_OK;
}

/* Append to a list of curl's; false for want of memory. */
static bool
append(struct curl_slist **list, const char *text)
{
	struct curl_slist *longer = curl_slist_append(*list, text);

	if (longer != NULL)
		*list = longer;
	return longer != NULL;
}

/* Once a backend, and not in the postmaster. */
static bool
init_curl(void)
{
	static bool done = false;

	if (!done)
		done = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
			(curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS) != 0;
	return done;
}

static bool
make_line(void)
{
	if (!init_curl())
		return false;
	line.multi = curl_multi_init();
	line.easy = curl_easy_init();
	return line.multi != NULL && line.easy != NULL &&
		append(&line.headers, "Content-Type: application/json") &&
		append(&line.headers, "Accept: application/json") &&
		append(&line.headers, "Expect:") &&
		append(&line.addresses, lockfence_settings.resolve) &&
		set_multi(line.multi) && set_transport(line.easy) && set_identity(line.easy);
}

/* Is there a line, and made under what holds now? */
static bool
line_is_current(void)
{
	return line.reserved && made_under == lockfence_settings_generation() &&
		made_after_reload == PgReloadTime;
}

Line *
lockfence_line(void)
{
	return &line;
}

/*
 * Have a line.  The connection itself is made by the first request; it takes a
 * place among the server's files.
 */
void
lockfence_open_line(void)
{
	sigset_t	saved;
	bool		made;

	if (line_is_current())
		return;
	lockfence_close_line();
	if (!AcquireExternalFD())
		ereport(ERROR,
				(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
				 errmsg("no file descriptor is left for a connection to the lock service"),
				 errhint("Raise max_files_per_process.")));
	line.reserved = true;
	made_under = lockfence_settings_generation();
	made_after_reload = PgReloadTime;
	lockfence_block_signals(&saved);
	made = make_line();
	lockfence_restore_signals(&saved);
	if (made)
		return;
	lockfence_close_line();
	ereport(ERROR,
			(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
			 errmsg("libcurl could not be set up"),
			 errdetail("It is %s, and has to resolve names asynchronously.", curl_version()),
			 errhint("Look at the settings of lockfence_validate, and at the libcurl that is installed.")));
}

/* Have none. */
void
lockfence_close_line(void)
{
	sigset_t	saved;

	if (!line.reserved)
		return;
	lockfence_block_signals(&saved);
	if (line.multi != NULL && line.easy != NULL)
		curl_multi_remove_handle(line.multi, line.easy);
	curl_easy_cleanup(line.easy);
	if (line.multi != NULL)
		curl_multi_cleanup(line.multi);
	curl_slist_free_all(line.headers);
	curl_slist_free_all(line.addresses);
	lockfence_restore_signals(&saved);
	ReleaseExternalFD();
	memset(&line, 0, offsetof(Line, body));
}
