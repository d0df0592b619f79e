# What the kit needs besides PostgreSQL.  Sourced by run and by scripts/pause.

KIT_PACKAGES=(gcc make etcd-server etcd-client nginx-light nftables iproute2 util-linux procps jq
	libmicrohttpd-dev libcurl4-openssl-dev libjansson-dev libpq-dev libssl-dev)

# nginx and etcd come with services that a package starts; nobody here wants them running.
need_kit_packages() {
	local policy=/usr/sbin/policy-rc.d made=
	if kit_tools_present; then return 0; fi
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
		as_root chmod 755 "$policy"
		made=1
	fi
	(need_packages "${KIT_PACKAGES[@]}") || { [ -z "$made" ] || as_root rm -f "$policy"; exit 1; }
	[ -z "$made" ] || as_root rm -f "$policy"
}

# Programs and headers rather than package names, so that other packagings of them do.
kit_tools_present() {
	local tool header
	PATH=$PATH:/usr/sbin:/sbin
	for tool in etcd etcdctl nginx nft ip setpriv pgrep jq cc make; do
		command -v "$tool" >/dev/null || return 1
	done
	for header in microhttpd.h jansson.h openssl/evp.h curl/curl.h libpq-fe.h; do
		printf '#include <%s>\n' "$header" | cc -E -I/usr/include/postgresql - >/dev/null 2>&1 || return 1
	done
}
