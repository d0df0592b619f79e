/*
 * connection.c
 *		The connection to the lock service: how it is made, kept and closed.
 *
 * A backend keeps its connection from one call to the next, as long as each call
 * was answered and the server's configuration was not reloaded, since the files
 * that the settings name may have been replaced then.  Anything else closes it.
 *
 * What a deployment could turn against its own safety is fixed here: the service
 * must prove its identity, nothing leads the request elsewhere (a redirect, a
 * proxy in the postmaster's environment, an address in ~/.netrc), and the answer
 * is not compressed.
 *
 * curl may start a thread to resolve a name.  A thread inherits the signal mask,
 * and PostgreSQL's handlers must not run in it, so every call that could start
 * one is made with all signals blocked.  curl_global_init() is called here too,
 * that is in a backend and never in the postmaster, and is never undone.
 *
 * curl calls the callbacks, which must return to it: they neither call palloc()
 * nor raise errors.
 */
#include "postgres.h"

#include <openssl/err.h>
#include <pthread.h>

#include "storage/fd.h"
#include "utils/timestamp.h"

#include "connection.h"
#include "lockfence.h"
#include "settings.h"
#include "wait.h"

static Connection conn;

/* The settings, and the last reload, that the connection was made under. */
static uint64 made_under = 0;
static TimestampTz made_after_reload = 0;

void
lockfence_block_signals(sigset_t *saved)
{
	sigset_t	all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, saved);
}

/* Accept signals again; errors that curl left in OpenSSL's queue must not reach the session's own TLS. */
void
lockfence_restore_signals(const sigset_t *saved)
{
	ERR_clear_error();
	pthread_sigmask(SIG_SETMASK, saved, NULL);
}

/* Callbacks of curl: what arrives */
static size_t
take_header(char *data, size_t size, size_t count, void *arg)
{
	conn.headers_len += size * count;
	return conn.headers_len <= MAX_HEADERS ? size * count : 0;
}

static size_t
take_body(char *data, size_t size, size_t count, void *arg)
{
	size_t		len = size * count;

	if (len > sizeof(conn.body) - conn.body_len)
		return 0;
	memcpy(conn.body + conn.body_len, data, len);
	conn.body_len += len;
	return len;
}

/* The options that all requests have in common. */
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
		curl_easy_setopt(easy, CURLOPT_HTTPHEADER, conn.headers) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, conn.error) == CURLE_OK;
}

/*
 * The identity that the service must prove, and ours.  The empty password keeps
 * OpenSSL from asking for that of an encrypted key at the server's terminal.
 */
static bool
set_identity(CURL *easy)
{
	if (!lockfence_url_is_secure())
		return true;
	return (lockfence_settings.resolve[0] == '\0' ||
			curl_easy_setopt(easy, CURLOPT_RESOLVE, conn.addresses) == CURLE_OK) &&
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

/* Append to a list of curl's; false if out of memory. */
static bool
append(struct curl_slist **list, const char *text)
{
	struct curl_slist *longer = curl_slist_append(*list, text);

	if (longer != NULL)
		*list = longer;
	return longer != NULL;
}

/*
 * Once per backend, and not in the postmaster.  A variable of the
 * server's environment would have curl write down the secrets of its connections.
 */
static bool
init_curl(void)
{
	static bool done = false;

	if (!done)
		done = unsetenv("SSLKEYLOGFILE") == 0 &&
			curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
			(curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS) != 0;
	return done;
}

static bool
make_connection(void)
{
	if (!init_curl())
		return false;
	conn.multi = curl_multi_init();
	conn.easy = curl_easy_init();
	return conn.multi != NULL && conn.easy != NULL &&
		append(&conn.headers, "Content-Type: application/json") &&
		append(&conn.headers, "Accept: application/json") &&
		append(&conn.headers, "Expect:") &&
		append(&conn.addresses, lockfence_settings.resolve) &&
		curl_multi_setopt(conn.multi, CURLMOPT_MAXCONNECTS, 1L) == CURLM_OK &&
		set_transport(conn.easy) && set_identity(conn.easy);
}

/* Is there a connection, made under the present settings? */
static bool
connection_is_current(void)
{
	return conn.reserved && made_under == lockfence_settings_generation() &&
		made_after_reload == PgReloadTime;
}

Connection *
lockfence_connection(void)
{
	return &conn;
}

/*
 * Prepare a connection, which the first request then makes.  It takes one of the
 * server's file descriptors.
 */
void
lockfence_open_connection(void)
{
	sigset_t	saved;
	bool		made;

	if (connection_is_current())
		return;
	lockfence_close_connection();
	if (!AcquireExternalFD())
		ereport(ERROR,
				(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
				 errmsg("no file descriptor left for a connection to the lock service"),
				 errhint("Raise max_files_per_process.")));
	conn.reserved = true;
	made_under = lockfence_settings_generation();
	made_after_reload = PgReloadTime;
	lockfence_block_signals(&saved);
	made = make_connection();
	lockfence_restore_signals(&saved);
	if (made)
		return;
	lockfence_close_connection();
	ereport(ERROR,
			(errcode(ERRCODE_FENCE_VALIDATOR_UNAVAILABLE),
			 errmsg("could not set up libcurl"),
			 errdetail("The library is %s; it must be able to resolve names asynchronously.", curl_version()),
			 errhint("Check the settings of lockfence_validate and the installed libcurl.")));
}

void
lockfence_close_connection(void)
{
	sigset_t	saved;

	if (!conn.reserved)
		return;
	lockfence_block_signals(&saved);
	if (conn.multi != NULL && conn.easy != NULL)
		curl_multi_remove_handle(conn.multi, conn.easy);
	curl_easy_cleanup(conn.easy);
	if (conn.multi != NULL)
		curl_multi_cleanup(conn.multi);
	curl_slist_free_all(conn.headers);
	curl_slist_free_all(conn.addresses);
	lockfence_restore_signals(&saved);
	ReleaseExternalFD();
	memset(&conn, 0, offsetof(Connection, body));
}
