# What the kit needs besides PostgreSQL.  Sourced by run and by scripts/pause.

KIT_PACKAGES=(gcc make etcd-server etcd-client nginx-light nftables iproute2 util-linux procps jq
	libmicrohttpd-dev libcurl4-openssl-dev libjansson-dev libpq-dev libssl-dev)

need_kit_packages() { kit_tools_present || need_packages "${KIT_PACKAGES[@]}"; }

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
