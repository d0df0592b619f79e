# What the kit needs besides PostgreSQL.  Sourced by run and by scripts/pause.

KIT_PACKAGES=(gcc make util-linux procps jq python3-jinja2 libcurl4-openssl-dev libjansson-dev libpq-dev)
KIT_TOOLS=(setpriv pgrep jq cc make)
KIT_HEADERS=(jansson.h curl/curl.h libpq-fe.h)
ETCD_PACKAGES=(etcd-server etcd-client nginx-light nftables iproute2 libmicrohttpd-dev libssl-dev)
ETCD_TOOLS=(etcd etcdctl nginx nft ip)
ETCD_HEADERS=(microhttpd.h openssl/evp.h)

need_kit_packages() {
	if [ -n "$WITH_ETCD" ]; then
		KIT_PACKAGES+=("${ETCD_PACKAGES[@]}") KIT_TOOLS+=("${ETCD_TOOLS[@]}") KIT_HEADERS+=("${ETCD_HEADERS[@]}")
	fi
	kit_tools_present || need_packages "${KIT_PACKAGES[@]}"
}

# Programs and headers rather than package names, so that other packagings of them do.
kit_tools_present() {
	local tool header
	PATH=$PATH:/usr/sbin:/sbin
	for tool in "${KIT_TOOLS[@]}"; do
		command -v "$tool" >/dev/null || return 1
	done
	/usr/bin/python3 -c 'import jinja2' 2>/dev/null || return 1
	for header in "${KIT_HEADERS[@]}"; do
		printf '#include <%s>\n' "$header" | cc -E -I/usr/include/postgresql - >/dev/null 2>&1 || return 1
	done
}
