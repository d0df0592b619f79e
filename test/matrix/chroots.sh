# Debian chroots, one for each PostgreSQL version.  Sourced by run, upgrade and dump, after lib.sh.
#
# They are kept in $LOCKFENCE_MATRIX_DIR (default /var/tmp/lockfence-matrix; about 1 GB each) and never written
# to but by apt: a run happens in namespaces of its own, with a /tmp and a /proc that vanish with it, so there is
# nothing to unmount or kill.

DIR=${LOCKFENCE_MATRIX_DIR:-/var/tmp/lockfence-matrix}

# The Debian release that has a PostgreSQL version.
suite_of() {
	case $1 in
		13) echo bullseye ;;
		15) echo bookworm ;;
		17) echo trixie ;;
		18) echo forky ;;
		19) echo sid ;;		# the packages come from experimental
		*) die "no Debian release known for PostgreSQL $1" ;;
	esac
}

root_of() { echo "$DIR/$(suite_of "$1")"; }

# The programs of the private server that "upgrade --build" makes in the chroot.
bindir_of() { echo "/tmp/work/server/usr/lib/postgresql/$1/bin"; }

# The mirror that this machine uses, if it is a Debian one.
debian_mirror() {
	grep -hoE '(https?|file)://[^ ]*/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1
}

# alone COMMAND...: in mount and process namespaces of its own, all of which ends with COMMAND.
alone() { unshare --mount --pid --fork --kill-child --mount-proc "$@"; }

# make_chroot SUITE: bootstraps $DIR/SUITE if it is not there.
make_chroot() {
	local root=$DIR/$1 keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	[ ! -d "$root" ] || return 0
	say "bootstrapping Debian $1"
	rm -rf "$root.part"
	# The script is the same for every release; naming it allows releases younger than debootstrap.
	alone debootstrap --variant=minbase --keyring="$keyring" "$1" "$root.part" $(debian_mirror) \
		/usr/share/debootstrap/scripts/sid >"$WORK/debootstrap.log" || { cat "$WORK/debootstrap.log"; return 1; }
	# A mirror that lags, or a frozen one, will do.
	echo 'Acquire::Check-Valid-Until "false";' >"$root.part/etc/apt/apt.conf.d/any-age"
	[ "$1" != sid ] || add_experimental "$root.part"
	mv "$root.part" "$root"
}

add_experimental() {
	sed 's/ sid / experimental /' "$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/experimental.list"
	printf '%s\n' 'Package: postgresql*-19 libpq* postgresql*-common postgresql-common-dev' \
		'Pin: release a=experimental' 'Pin-Priority: 990' >"$1/etc/apt/preferences.d/postgresql"
}

# take_chroot VERSION: makes it if need be, and keeps others from it until this shell ends.
take_chroot() {
	local root=$DIR/$(suite_of "$1") lock
	exec {lock}>"$root.lock"
	flock "$lock"
	make_chroot "$(suite_of "$1")" || return
	cp /etc/resolv.conf "$root/etc/resolv.conf"
}

# furnish_chroot ROOT TREE: its /proc and /tmp, with a copy of the tree.  To be called in namespaces of its own.
furnish_chroot() {
	mount -t proc proc "$1/proc"
	mount -t tmpfs tmpfs "$1/tmp"
	mkdir "$1/tmp/tree"
	tar -C "$2" --exclude=.git -cf - . | tar -C "$1/tmp/tree" --no-same-owner -xf -
}
export -f furnish_chroot

# Said in full if it fails.
quietly() { "$@" >"$WORK/said" 2>&1 || { cat "$WORK/said" >&2; die "failed: $*"; }; }

# What an environment inside may need to know.
CLEAN_ENV=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin CI=true)
