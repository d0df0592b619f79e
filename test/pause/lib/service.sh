# The lock service: the arbiter, and nginx doing mutual TLS in front of it.  Sourced by run.

CERTS=
ADMIN=operator

# service_certs CLIENTS: an authority for this run.
service_certs() {
	CERTS=$WORK/certs
	mkdir -p "$CERTS"
	"$BUILD/pause-certs" "$CERTS" "$1" "$ADMIN" a b database
	[ "$(id -u)" != 0 ] || chown -R postgres: "$CERTS"
}

# arbiter_start [OPTION...]: in the hub where the quorum is in namespaces.
arbiter_start() {
	local inside=()
	[ "$QUORUM_IN" = loopback ] || inside=(ip netns exec "$NS-hub")
	spawn arbiter "${inside[@]}" "${unprivileged[@]}" "$BUILD/pause-arbiter" \
		--etcd "${CLIENT_URL[1]}" --etcd "${CLIENT_URL[2]}" --etcd "${CLIENT_URL[3]}" \
		--work-socket "$WORK/work.sock" --renew-socket "$WORK/renew.sock" \
		--state "$WORK/arbiter.state" --audit "$WORK/audit.log" --admin "$ADMIN" \
		--floor-dsn "$DSN" $(sabotage_of_arbiter) "$@"
	ARBITER_PID=$LAST
	wait_until 30 test -S "$WORK/work.sock" || die 'the arbiter does not start; see the logs'
}

arbiter_stop() {
	stop_group "$ARBITER_PID"
	rm -f "$WORK/work.sock" "$WORK/renew.sock"
}

# front_start [ACQUIRES]: how many acquires nginx lets in at once.
front_start() {
	local port dir=$WORK/nginx _
	mkdir -p "$dir"
	for _ in 1 2 3 4 5; do		# another process may take the port in between
		port=$(free_port)
		write_nginx_conf "$dir" "$port" "${1:-64}"
		[ "$(id -u)" != 0 ] || chown -R postgres: "$dir"
		spawn_as_user nginx nginx -p "$dir/" -e "$dir/error.log" -c "$dir/nginx.conf"
		FRONT_PID=$LAST
		URL=https://127.0.0.1:$port
		if wait_until 10 front_answers; then return 0; fi
		stop_group "$FRONT_PID"
	done
	die 'nginx does not start; see its error.log'
}

front_answers() {
	alive "$FRONT_PID" || return 0
	call "$ADMIN" /v1/stats 2>/dev/null && [ "$CALL_STATUS" = 200 ]
}

front_stop() { stop_group "$FRONT_PID"; }

# Renewals and validations have an upstream of their own and no limit; what else comes is limited,
# and what is over the limit is told when to come again.
write_nginx_conf() {
	local dir=$1 port=$2 acquires=$3
	cat >"$dir/nginx.conf" <<-CONF
		daemon off;
		worker_processes 2;
		worker_rlimit_nofile 20000;
		pid $dir/pid;
		events { worker_connections 9000; }
		http {
			client_body_temp_path $dir/body;
			proxy_temp_path $dir/proxy;
			fastcgi_temp_path $dir/fastcgi;
			uwsgi_temp_path $dir/uwsgi;
			scgi_temp_path $dir/scgi;
			map \$ssl_client_s_dn \$client_name {
				default "";
				"~(?:^|,)CN=(?<cn>[^,]+)" \$cn;
			}
			map \$status \$worth_logging { default 0; ~^5 1; 499 1; }
			log_format shed '\$msec \$uri \$status \$client_name';
			access_log $dir/shed.log shed if=\$worth_logging;
			limit_conn_zone \$server_name zone=work:1m;
			limit_conn_status 503;
			limit_conn_log_level info;
			keepalive_timeout 75s;
			keepalive_requests 100000;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header X-Client-Identity \$client_name;
			proxy_read_timeout 20s;
			proxy_next_upstream off;
			upstream renew { server unix:$WORK/renew.sock max_fails=0; keepalive 128; }
			upstream work { server unix:$WORK/work.sock max_fails=0; keepalive 128; }
			server {
				listen 127.0.0.1:$port ssl backlog=4096;
				server_name lockfence;
				ssl_certificate $CERTS/server.pem;
				ssl_certificate_key $CERTS/server.key;
				ssl_client_certificate $CERTS/ca.pem;
				ssl_verify_client on;
				ssl_protocols TLSv1.2 TLSv1.3;
				ssl_session_cache shared:sessions:10m;
				default_type application/json;
				location = /v1/renew { proxy_pass http://renew; }
				location = /v1/validate { proxy_pass http://renew; }
				location / {
					limit_conn work $acquires;
					error_page 502 503 = @busy;
					proxy_pass http://work;
				}
				location = /v1/stats { proxy_pass http://work; }
				location = /v1/advance-epoch { proxy_pass http://work; }
				location @busy {
					add_header Retry-After ${RETRY_AFTER:-2} always;
					return 503 '{"error":{"code":"busy","message":"too many requests at once"}}';
				}
			}
		}
	CONF
}

# call WHO PATH [JSON]: leaves CALL_STATUS, CALL_BODY and CALL_CODE (of an error).
call() {
	local answer
	answer=$("$BUILD/pause-call" "$URL$2" "$CERTS/ca.pem" "$CERTS/$1.pem" "$CERTS/$1.key" "${3-}") || true
	CALL_STATUS=${answer%%$'\n'*}
	CALL_BODY=${answer#*$'\n'}
	CALL_CODE=$(jq -r '.error.code // ""' <<<"$CALL_BODY" 2>/dev/null || true)
}

# field NAME: of the last answer.
field() { jq -r --arg f "$1" '.[$f] | if . == null then "" else tostring end' <<<"$CALL_BODY"; }

# epoch_first: a new cluster serves nothing until an operator says which epoch begins.
epoch_first() {
	call "$ADMIN" /v1/advance-epoch '{"reason":"first start of this quorum"}'
	[ "$CALL_STATUS" = 200 ] || die "the epoch did not advance: $CALL_BODY"
	EPOCH=$(field epoch)
}

# service_start loopback|namespaces [ARBITER-OPTION...]
service_start() {
	quorum_plan "$1"
	quorum_start "kit-$$"
	arbiter_start "${@:2}"
	front_start "${ACQUIRES:-64}"
	epoch_first
}

service_stop() {
	rm -f "$WORK/nginx/shed.log"	# counted by service
	front_stop
	arbiter_stop
	quorum_stop
	rm -f "$WORK/arbiter.state"
}
