# A quorum of three etcd members, on loopback or each in a network namespace.  Sourced by run.

MEMBERS=(1 2 3)
ETCD_TUNING=(--heartbeat-interval 50 --election-timeout 500 --pre-vote
	--enable-v2=false --logger zap --log-level warn)

# quorum_plan loopback|namespaces: where each member listens.
quorum_plan() {
	local m
	QUORUM_IN=$1
	for m in "${MEMBERS[@]}"; do
		if [ "$1" = loopback ]; then
			CLIENT_URL[m]=http://127.0.0.1:$(free_port)
			PEER_URL[m]=http://127.0.0.1:$(free_port)
		else
			CLIENT_URL[m]=http://$(member_address "$m"):2379
			PEER_URL[m]=http://$(member_address "$m"):2380
		fi
	done
	ENDPOINTS="${CLIENT_URL[1]},${CLIENT_URL[2]},${CLIENT_URL[3]}"
	CLUSTER="m1=${PEER_URL[1]},m2=${PEER_URL[2]},m3=${PEER_URL[3]}"
}

# etcdctl, from where the quorum can be reached.
ectl() {
	local inside=()
	[ "$QUORUM_IN" = loopback ] || inside=(ip netns exec "$NS-hub")
	ETCDCTL_API=3 "${inside[@]}" etcdctl --endpoints "$ENDPOINTS" "$@"
}

# quorum_start TOKEN: members with empty directories found a cluster; others go on.
quorum_start() {
	local m inside
	for m in "${MEMBERS[@]}"; do
		inside=()
		[ "$QUORUM_IN" = loopback ] || inside=(ip netns exec "$NS-m$m")
		spawn "etcd-$m" "${inside[@]}" "${unprivileged[@]}" etcd --name "m$m" --data-dir "$WORK/etcd-$m" \
			--listen-client-urls "${CLIENT_URL[m]}" --advertise-client-urls "${CLIENT_URL[m]}" \
			--listen-peer-urls "${PEER_URL[m]}" --initial-advertise-peer-urls "${PEER_URL[m]}" \
			--initial-cluster "$CLUSTER" --initial-cluster-token "$1" --initial-cluster-state new \
			"${ETCD_TUNING[@]}"
		MEMBER_PID[m]=$LAST
	done
	wait_until 60 quorum_serves || die 'etcd does not serve; see the logs'
}

quorum_serves() { ectl --command-timeout=2s get /sys/epoch >/dev/null 2>&1; }

quorum_stop() {
	local m
	for m in "${MEMBERS[@]}"; do
		[ -z "${MEMBER_PID[m]-}" ] || stop_group "${MEMBER_PID[m]}"
		MEMBER_PID[m]=
	done
	rm -rf "$WORK"/etcd-[0-9]
}

# quorum_destroy: as a disaster does it.
quorum_destroy() {
	local m
	for m in "${MEMBERS[@]}"; do kill_group "${MEMBER_PID[m]}"; MEMBER_PID[m]=; done
	rm -rf "$WORK"/etcd-[0-9]
}

# quorum_restore SNAPSHOT TOKEN: three new members out of one old snapshot.
quorum_restore() {
	local m
	for m in "${MEMBERS[@]}"; do
		ETCDCTL_API=3 "${unprivileged[@]}" etcdctl snapshot restore "$1" --name "m$m" \
			--data-dir "$WORK/etcd-$m" --initial-cluster "$CLUSTER" --initial-cluster-token "$2" \
			--initial-advertise-peer-urls "${PEER_URL[m]}" >>"$LOGS/restore.log" 2>&1
	done
	quorum_start "$2"
}

# The number of the member that leads; nothing if none says so.
quorum_leader() {
	ectl --command-timeout=2s endpoint status -w json 2>/dev/null |
		jq -r --arg urls "$ENDPOINTS" '($urls | split(",")) as $u | [.[] | select(.Status.leader == .Status.header.member_id)]
			| max_by(.Status.raftTerm) | .Endpoint as $e | ($u | index($e)) + 1' 2>/dev/null || true
}

cluster_id() { ectl endpoint status -w json | jq -r '.[0].Status.header.cluster_id'; }
