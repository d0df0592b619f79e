# Shared by scripts/* and test/*/run; a bash file to be sourced, not run.
#
# The short way to a server with the extension in it:
#
#   . "$(dirname "$0")/lib.sh"
#   prepare           # packages, a private copy of the server, the tree built and installed into it
#   start_cluster     # a throw-away cluster; psql and friends find it through PGHOST, PGPORT, ...
#   as_user psql -c 'CREATE EXTENSION lockfence'
#
# Nothing but packages is installed outside $WORK, so parallel runs do not interfere, and everything is removed
# when the script ends, however it ends. What prepare() leaves for the caller:
#
#   WORK       a temporary directory of the unprivileged user, the current directory from then on
#   SRC        the copy of the tree that is built, $WORK/src
#   PATH       with the private server's programs first
#   PG_CONFIG  the one to build with
#   PG_MAJOR   13, 15, ...
#
# Environment: PG_CONFIG uses that PostgreSQL instead of a packaged one, LOCKFENCE_PG=17 a packaged one
# that is not the distribution's default, CI=true makes warnings errors.
#
# A script that needs lockfence_validate sets WITH_VALIDATE=yes before prepare.

set -euo pipefail

MORE_PACKAGES=()	# what a script needs besides; NN stands for the version
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PGDATA=

say() { printf '==> %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# usage [STATUS]: prints the head of the running script, which tells how to call it.
usage() {
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
	exit "${1:-64}"
}

# ---- which user runs what -------------------------------------------------------------------------------

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo env DEBIAN_FRONTEND="${DEBIAN_FRONTEND-}" "$@"
	else
		die "cannot run '$*': be root or install sudo"
	fi
}

# PostgreSQL refuses to run as root, so root becomes the user that Debian's packages create for it.
as_user() {
	if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

# The same, but replaces the calling shell.
exec_as_user() {
	if [ "$(id -u)" = 0 ]; then exec runuser -u postgres -- "$@"; else exec "$@"; fi
}

# ---- packages ------------------------------------------------------------------------------------

# need_packages PKG...: installs those that are missing, without creating a cluster or starting a service.
need_packages() {
	local pkg missing=()
	for pkg; do
		dpkg-query -W -f '${db:Status-Status}\n' "$pkg" 2>/dev/null | grep -qx installed || missing+=("$pkg")
	done
	[ ${#missing[@]} = 0 ] && return
	say "installing ${missing[*]}"
	refresh_packages
	restrain_packages
	DEBIAN_FRONTEND=noninteractive as_root apt-get -qq -y -o DPkg::Lock::Timeout=300 \
		--no-install-recommends install "${missing[@]}" \
		</dev/null >"$WORK/apt.log" 2>&1 || { cat "$WORK/apt.log" >&2; die "could not install ${missing[*]}"; }
	release_packages
}

# Rules for the time of an installation; existing ones stay.
PACKAGE_RULES=()
restrain_packages() {
	local no_cluster=/etc/postgresql-common/createcluster.d/lockfence.conf no_service=/usr/sbin/policy-rc.d
	PACKAGE_RULES=("$no_cluster")
	as_root mkdir -p "${no_cluster%/*}"
	echo 'create_main_cluster = false' | as_root tee "$no_cluster" >/dev/null
	[ ! -e $no_service ] || return 0
	PACKAGE_RULES+=("$no_service")
	printf '#!/bin/sh\nexit 101\n' | as_root tee $no_service >/dev/null
	as_root chmod 755 $no_service
}

release_packages() {
	[ ${#PACKAGE_RULES[@]} = 0 ] || as_root rm -f "${PACKAGE_RULES[@]}"
	PACKAGE_RULES=()
}

refresh_packages() {
	[ -z "${packages_fresh-}" ] || return 0
	command -v apt-get >/dev/null || die 'no apt-get here: install PostgreSQL and its headers and set PG_CONFIG'
	as_root apt-get -qq update </dev/null >&2 || say 'apt-get update failed; going on with what it knew'
	packages_fresh=1
}

# The version that the distribution's own "postgresql" package stands for.
default_version() {
	LC_ALL=C apt-cache depends postgresql 2>/dev/null | sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p' | head -n 1
}

# The additional packages for building lockfence_validate.
VALIDATE_PACKAGES=(libcurl4-openssl-dev libjansson-dev libssl-dev)

# Sets PG_CONFIG, after installing a server and what building against it requires.
find_postgres() {
	if [ -z "${PG_CONFIG-}" ]; then
		local version=${LOCKFENCE_PG-}
		if [ -z "$version" ]; then
			version=$(default_version)
			[ -n "$version" ] || { refresh_packages; version=$(default_version); }
		fi
		[ -n "$version" ] || die 'found no package called postgresql'
		need_packages gcc make perl "postgresql-$version" "postgresql-server-dev-$version" libipc-run-perl \
			"${MORE_PACKAGES[@]//NN/$version}" ${WITH_VALIDATE:+"${VALIDATE_PACKAGES[@]}"}
		PG_CONFIG=/usr/lib/postgresql/$version/bin/pg_config
	fi
	PG_MAJOR=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
	[ "$(id -u)" != 0 ] || id postgres >/dev/null 2>&1 || useradd --system --shell /bin/sh postgres
}

# ---- a private server ----------------------------------------------------------------------------

make_workdir() {
	WORK=$(mktemp -d /tmp/lockfence.XXXXXX)
	chmod 755 "$WORK"
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	cd "$WORK"
	export WORK HOME="$WORK"
}

clean_up() {
	local status=$?
	trap - EXIT
	trap '' INT TERM HUP
	stop_cluster || true
	release_packages
	cd /
	rm -rf "$WORK"
	exit "$status"
}

# PostgreSQL finds its files relative to its programs, so a copy of its directories under $WORK/server is
# a whole installation, to which DESTDIR installs.
copy_server() {
	local dir
	for dir in $("$PG_CONFIG" --bindir --pkglibdir --sharedir); do
		mkdir -p "$WORK/server${dir%/*}"
		cp -a "$dir" "$WORK/server${dir%/*}/"
	done
	export PG_CONFIG PG_MAJOR PATH="$WORK/server$("$PG_CONFIG" --bindir):$PATH"
}

copy_tree() {
	SRC=$WORK/src
	mkdir -p "$SRC"
	tar -C "$ROOT" --exclude=.git --exclude='*.o' --exclude='*.bc' --exclude='*.so' -cf - . | tar -C "$SRC" --no-same-owner -xf -
	export SRC
}

# build_extension [MAKE-ARGUMENT...]: builds $SRC and installs it into the private server; without bitcode, which would double the time.
build_extension() {
	local werror=() targets=(all install ${WITH_VALIDATE:+validate install-validate})
	[ "${CI-}" != true ] || werror=(COPT=-Werror)
	as_user make -s -k -j2 -C "$SRC" with_llvm=no PG_CONFIG="$PG_CONFIG" DESTDIR="$WORK/server" "${werror[@]}" "$@" "${targets[@]}" >"$WORK/build.log" 2>&1 ||
		{ cat "$WORK/build.log" >&2; die 'the extension does not build'; }
	grep -B1 -A4 'warning:' "$WORK/build.log" >&2 || true
}

# install_run: lockfence-run, into the private server's programs.
install_run() {
	local werror=()
	[ "${CI-}" != true ] || werror=(COPT=-Werror)
	as_user make -s -C "$SRC" PG_CONFIG="$PG_CONFIG" DESTDIR="$WORK/server" "${werror[@]}" install-run
}

# prepare [MAKE-ARGUMENT...]
prepare() {
	export TRACK=on		# in a private server installcheck may count
	make_workdir
	find_postgres
	copy_server
	copy_tree
	[ "$(id -u)" != 0 ] || chown -R postgres: "$WORK"
	say "building against PostgreSQL $("$PG_CONFIG" --version | sed 's/PostgreSQL //')"
	build_extension "$@"
}

# compile_with_libpq PROGRAM ARGUMENT...: with the server's headers and library, wherever copy_server put them.
compile_with_libpq() {
	local program=$1 include lib
	shift
	include=$("$PG_CONFIG" --includedir)
	lib=$("$PG_CONFIG" --libdir)
	include=${include#"$WORK/server"} lib=${lib#"$WORK/server"}
	as_user "${CC:-cc}" -std=gnu11 -Wall -Wextra -Wshadow -I"$include" -o "$program" "$@" \
		-L"$lib" -Wl,-rpath,"$lib" -lpq
}

free_port() {
	perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport'
}

# start_cluster ['SETTING = VALUE'...]: as the superuser "postgres", without passwords, on a socket in
# $WORK and on loopback. The server's environment, such as LD_PRELOAD, is in the array SERVER_ENV.
start_cluster() {
	export PGHOST="$WORK" PGUSER=postgres PGDATABASE=postgres PGPORT
	PGDATA=$WORK/data
	as_user initdb -D "$PGDATA" -U postgres -A trust -E UTF8 --no-locale --no-sync >"$WORK/initdb.log" 2>&1 ||
		{ cat "$WORK/initdb.log" >&2; die 'initdb failed'; }
	printf '%s\n' "unix_socket_directories = '$WORK'" "listen_addresses = '127.0.0.1'" 'fsync = off' \
		"log_line_prefix = '%m [%p] %q%a '" "$@" |
		as_user tee -a "$PGDATA/postgresql.conf" >/dev/null
	for _ in 1 2 3 4 5; do		# another process may take the port in between
		PGPORT=$(free_port)
		as_user env "${SERVER_ENV[@]-_=}" pg_ctl -s -w -D "$PGDATA" -l "$WORK/server.log" -o "-p $PGPORT" start && return
	done 2>"$WORK/pg_ctl.log"
	cat "$WORK/pg_ctl.log" "$WORK/server.log" >&2
	die 'the server does not start'
}

# preload_sanitizer RUNTIME: has the servers that are started from now on load AddressSanitizer's runtime, since a
# process that loads an instrumented library must have it from its start.
#
# The runtime calls dlerror(), whose gettext lock deadlocks with the one that libgpg-error, a library of the
# server's, holds when its own start-up happens to wake the runtime; so something else wakes it first.
# Leaks are not looked for: PostgreSQL frees by context, or by exiting.
preload_sanitizer() {
	printf '%s\n' '#include <stdlib.h>' '__attribute__((constructor)) static void wake(void) { free(malloc(1)); }' |
		gcc -x c -shared -fPIC -O0 -Wl,-z,initfirst -o "$WORK/wake.so" -
	SERVER_ENV=(
		LD_PRELOAD="$1 $WORK/wake.so"
		ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=1"
		UBSAN_OPTIONS=print_stacktrace=1
	)
	# Older runtimes do not stand wide address randomisation.
	! setarch --addr-no-randomize true 2>/dev/null || SERVER_ENV+=(setarch --addr-no-randomize)
}

# restart_cluster ['SETTING=VALUE'...]: with these settings on top.
restart_cluster() {
	as_user env "${SERVER_ENV[@]-_=}" pg_ctl -s -w -D "$PGDATA" -l "$WORK/server.log" \
		-o "-p $PGPORT ${*/#/-c }" restart
}

stop_cluster() {
	[ -n "$PGDATA" ] && [ -f "$PGDATA/postmaster.pid" ] || return 0
	as_user pg_ctl -s -w -D "$PGDATA" -m immediate stop
}

# ---- tests ---------------------------------------------------------------------------------------

# tests_in FOLDER: its TAP tests.  A number stands for one test: branches that add one each may have taken the same.
tests_in() {
	local twice
	twice=$(printf '%s\n' "$1"/*.pl | sed 's,.*/\([0-9]*\)_.*,\1,' | sort | uniq -d)
	[ -z "$twice" ] || { echo "not ok 1 - two tests have the number" $twice >&2; return 1; }
	printf '%s\n' "$1"/*.pl
}

# What runs whole suites says "N passed, N failed" as its last line; a test program prints TAP (tap.sh).
report() {
	printf '%s passed, %s failed\n' "$1" "$2"
	[ "$2" = 0 ]
}
