# Network namespaces: a hub with a bridge, and one namespace a member on it.  Sourced by run.
#
# Nothing outside them is touched: the bridge, the addresses and the packet filter live inside.

NS=lockfence-$$
NETNS_MADE=

member_address() { echo "10.77.0.$1"; }
in_hub() { ip netns exec "$NS-hub" "$@"; }

# netns_possible: may this machine's user create them?  The reason is left in NETNS_PROBLEM.
netns_possible() {
	if NETNS_PROBLEM=$(ip netns add "$NS-try" 2>&1); then
		if NETNS_PROBLEM=$(ip netns exec "$NS-try" ip link set lo up 2>&1 &&
			ip -n "$NS-try" link add type bridge 2>&1 &&
			ip netns exec "$NS-try" nft add table inet try 2>&1); then
			ip netns del "$NS-try"
			return 0
		fi
		ip netns del "$NS-try"
	fi
	return 1
}

netns_start() {
	local m
	NETNS_MADE=1
	ip netns add "$NS-hub"
	ip -n "$NS-hub" link set lo up
	ip -n "$NS-hub" link add br0 type bridge
	ip -n "$NS-hub" addr add 10.77.0.254/24 dev br0
	ip -n "$NS-hub" link set br0 up
	for m in "${MEMBERS[@]}"; do
		ip netns add "$NS-m$m"
		ip -n "$NS-m$m" link set lo up
		ip -n "$NS-hub" link add "m$m" type veth peer name eth0 netns "$NS-m$m"
		ip -n "$NS-hub" link set "m$m" master br0 up
		ip -n "$NS-m$m" addr add "$(member_address "$m")/24" dev eth0
		ip -n "$NS-m$m" link set eth0 up
	done
	in_hub nft -f - <<-'NFT'
		table inet kit {
			chain input { type filter hook input priority 0; policy accept; }
		}
	NFT
}

netns_stop() {
	local n
	[ -n "$NETNS_MADE" ] || return 0
	for n in m1 m2 m3 hub; do ip netns del "$NS-$n" 2>/dev/null || true; done
	NETNS_MADE=
}

# Requests reach the member, its answers do not come back.
mute_member() { in_hub nft add rule inet kit input ip saddr "$(member_address "$1")" drop; }
unmute_members() { in_hub nft flush chain inet kit input; }
cut_member() { ip -n "$NS-hub" link set "m$1" down; }
heal_member() { ip -n "$NS-hub" link set "m$1" up; }
