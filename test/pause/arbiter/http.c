/*
 * http.c
 *	  The arbiter's two lanes of HTTP, on unix sockets behind nginx.
 *
 * Renewals (and validations) have a lane of their own: a fixed pool of threads
 * that works through them in turn, never refusing one.  Everything else, which
 * may wait, has a thread per connection and a bounded number of them.  Which
 * client it is, nginx says in a header, from the certificate it verified; so only
 * nginx may reach the sockets.
 */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "arbiter.h"

#define MAX_BODY 16384
#define RENEW_THREADS 32
#define MAX_RENEW_CONNECTIONS 4096
#define MAX_WORK_CONNECTIONS 256
#define IDLE_TIMEOUT_S 120

typedef struct request
{
	size_t		len;
	char		body[MAX_BODY];
	bool		too_long;
} request;

typedef struct route
{
	const char *path;
	reply		(*handle) (const char *identity, json_t *in);
	bool		when_sealed;
} route;

static reply
handle_stats(const char *identity, json_t *in)
{
	(void) identity;
	(void) in;
	return reply_ok(stats_json());
}

static const route routes[] = {
	{"/v1/renew", session_renew, false},
	{"/v1/validate", lock_validate, false},
	{"/v1/session", session_open, false},
	{"/v1/acquire", lock_acquire, false},
	{"/v1/release", lock_release, false},
	{"/v1/describe", lock_describe, false},
	{"/v1/force-release", lock_force_release, false},
	{"/v1/advance-epoch", epoch_advance, true},
	{"/v1/stats", handle_stats, true},
};

static struct MHD_Daemon *lanes[2];

static reply
sealed_reply(void)
{
	char		reason[160];

	seal_is_sealed(reason, sizeof reason);
	count(COUNT_SEALED_ANSWERS);
	return reply_error(503, "sealed", "nothing is served until the epoch advances: %s", reason);
}

/*
 * Sealed before or sealed by what this very request brought to light: either way
 * nothing that was found out is told.
 */
static reply
dispatch(const route *to, const char *identity, json_t *in)
{
	reply		r;

	if (!to->when_sealed && seal_is_sealed(NULL, 0))
		return sealed_reply();
	r = to->handle(identity, in);
	if (!to->when_sealed && seal_is_sealed(NULL, 0))
	{
		json_decref(r.body);
		r = sealed_reply();
	}
	return r;
}

static const route *
find_route(const char *path)
{
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
		if (strcmp(path, routes[i].path) == 0)
			return &routes[i];
	return NULL;
}

static enum MHD_Result
take_argument(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
	(void) kind;
	if (value)
		json_object_set_new(arg, key, json_string(value));
	return MHD_YES;
}

/* The body of a POST, or the arguments of a GET. */
static json_t *
read_input(struct MHD_Connection *c, const char *method, request *req)
{
	json_t	   *in;

	if (strcmp(method, "GET") == 0)
	{
		in = json_object();
		MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, take_argument, in);
		return in;
	}
	in = json_loadb(req->body, req->len, 0, NULL);
	if (in && !json_is_object(in))
	{
		json_decref(in);
		return NULL;
	}
	return in;
}

static reply
answer_request(struct MHD_Connection *c, const char *path, const char *method, request *req)
{
	const char *identity = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "X-Client-Identity");
	const route *to = find_route(path);
	json_t	   *in;
	reply		r;

	if (to == NULL)
		return reply_error(404, "no_such_endpoint", "there is no %.100s", path);
	if (identity == NULL || *identity == '\0' || strlen(identity) > MAX_IDENTITY)
		return reply_error(401, "no_identity", "the client's certificate names no client");
	if (req->too_long)
		return reply_error(413, "too_long", "the body may have %d bytes", MAX_BODY);
	in = read_input(c, method, req);
	if (in == NULL)
		return reply_error(400, "bad_json", "the body is not a JSON object");
	r = dispatch(to, identity, in);
	json_decref(in);
	return r;
}

static enum MHD_Result
send_reply(struct MHD_Connection *c, reply r)
{
	char	   *text = json_dumps(r.body, JSON_COMPACT);
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result queued;
	char		seconds[16];

	json_decref(r.body);
	MHD_add_response_header(response, "Content-Type", "application/json");
	if (r.retry_after_s)
	{
		snprintf(seconds, sizeof seconds, "%d", r.retry_after_s);
		MHD_add_response_header(response, "Retry-After", seconds);
	}
	queued = MHD_queue_response(c, r.status, response);
	MHD_destroy_response(response);
	return queued;
}

static enum MHD_Result
handle_request(void *arg, struct MHD_Connection *c, const char *path, const char *method,
			   const char *version, const char *data, size_t *size, void **state)
{
	request    *req = *state;

	(void) arg;
	(void) version;
	if (req == NULL)			/* the headers have come */
	{
		req = *state = malloc(sizeof *req);
		req->len = 0;
		req->too_long = false;
		return MHD_YES;
	}
	if (*size > 0)
	{
		req->too_long = req->too_long || req->len + *size > MAX_BODY;
		if (!req->too_long)
			memcpy(req->body + req->len, data, *size);
		req->len += req->too_long ? 0 : *size;
		*size = 0;
		return MHD_YES;
	}
	return send_reply(c, answer_request(c, path, method, req));
}

static void
forget_request(void *arg, struct MHD_Connection *c, void **state,
			   enum MHD_RequestTerminationCode how)
{
	(void) arg;
	(void) c;
	(void) how;
	free(*state);
	*state = NULL;
}

static int
listen_on(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int			fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(path) >= sizeof addr.sun_path)
		return -1;
	strcpy(addr.sun_path, path);
	unlink(path);
	umask(0077);
	if (bind(fd, (struct sockaddr *) &addr, sizeof addr) < 0 || listen(fd, 4096) < 0)
		return -1;
	return fd;
}

static struct MHD_Daemon *
start_lane(const char *path, unsigned flags, unsigned limit, unsigned pool)
{
	int			fd = listen_on(path);
	struct MHD_OptionItem threads[] = {
		{pool ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, pool, NULL},
		{MHD_OPTION_END, 0, NULL}
	};

	if (fd < 0)
		return NULL;
	return MHD_start_daemon(flags | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle_request, NULL,
							MHD_OPTION_LISTEN_SOCKET, fd,
							MHD_OPTION_NOTIFY_COMPLETED, forget_request, NULL,
							MHD_OPTION_CONNECTION_LIMIT, limit,
							MHD_OPTION_CONNECTION_TIMEOUT, (unsigned) IDLE_TIMEOUT_S,
							MHD_OPTION_ARRAY, threads,
							MHD_OPTION_END);
}

int
http_start(void)
{
	lanes[0] = start_lane(conf.renew_socket, MHD_USE_EPOLL_INTERNAL_THREAD,
						  MAX_RENEW_CONNECTIONS, RENEW_THREADS);
	lanes[1] = start_lane(conf.work_socket,
						  MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL,
						  MAX_WORK_CONNECTIONS, 0);
	return lanes[0] && lanes[1] ? 0 : -1;
}

void
http_stop(void)
{
	for (int i = 0; i < 2; i++)
		if (lanes[i])
			MHD_stop_daemon(lanes[i]);
}
