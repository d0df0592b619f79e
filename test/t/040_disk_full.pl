# The disk is full: an error or a crash, and the fence is right afterwards.
#
# test/t/full.c, preloaded, is the disk: it has no space for the files that we say.
use strict;
use warnings;

use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $dir = abs_path(PostgreSQL::Test::Utils::tempdir());

# ---- the disk

system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-o', "$dir/full.so", "$FindBin::RealBin/full.c", '-ldl');
$ENV{LD_PRELOAD} = "$dir/full.so";
$ENV{FULL_DISK} = "$dir/full";

sub fill_disk
{
	my ($text) = @_;

	append_to_file("$dir/full", $text);
	return;
}

sub free_disk
{
	unlink("$dir/full") == 1 or die "the disk was not full: $!";
	return;
}

my $node = fenced_node('full', "restart_after_crash = off\nwal_recycle = off\nmax_wal_size = 2MB\nmin_wal_size = 2MB\n",
	extra => ['--wal-segsize=1']);

$node->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}');
	BEGIN; SELECT lockfence.present(20); INSERT INTO batch SELECT generate_series(1, 5); COMMIT;
});

# The end of a relation's path, which is no other's.
sub path_of
{
	my ($relation) = @_;

	return '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$relation')");
}

# ---- what must hold

# The fence decides on the marks that are there, with space or without.
sub decides
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	refused_ok($node, 'postgres', "SELECT lockfence.present('batch-1', 19)", 'LF001', "$what: a stale token is refused");
	refused_ok($node, 'postgres', q{SELECT lockfence.guarded_update('batch', '{"id": 1}', '{"note": "stale"}', 19)}, 'LF001',
		"$what: so is a stale write");
	query_is($node, 'postgres', "SELECT lockfence.present('batch-1', 20)", 20, "$what: the current one is accepted");
	return;
}

# Presents tokens for new resources until there is no space for a mark.  Returns the resource as SQL, and the error.
sub use_up
{
	my ($session, $name) = @_;

	foreach my $i (1 .. 1000)
	{
		my $resource = "rpad('$name-$i-', 1000, 'x')";
		my $said = ask($session, "SELECT lockfence.present($resource, 10)");
		return ($resource, $said) if $said =~ /ERROR/;
	}
	die 'the disk is never full';
}

# ---- no space for a mark, or for its entry in the index

my $s = session($node, 'postgres');
my $other = session($node, 'postgres');

foreach my $relation ('lockfence.mark', 'lockfence.mark_pkey')
{
	fill_disk(path_of($relation));
	my ($resource, $error) = use_up($s, $relation);

	like($error, qr/ERROR:  53100: could not extend file .*No space left on device/, "no space in $relation: the advance is an error");
	like($error, qr/HINT:  Check free disk space/, "no space in $relation: it says what is the matter");
	query_is($node, 'postgres', "SELECT count(*) FROM lockfence.mark WHERE resource = $resource", 0, "no space in $relation: there is no mark");
	query_is($node, 'postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}, 0, "no space in $relation: no lock is left");
	decides("no space in $relation");
	like(ask($s, "BEGIN; SELECT lockfence.present($resource, 10)"), qr/53100/, "no space in $relation: the next attempt fails too");
	like(ask($s, q{INSERT INTO batch VALUES (100, 'unfenced')}), qr/25P02/, "no space in $relation: its transaction is over");
	ask($s, 'ROLLBACK');
	like(ask($other, "SELECT lockfence.present($resource, 11)"), qr/53100/, "no space in $relation: nor does it work for another holder");

	free_disk();
	is(ask($other, "SELECT lockfence.present($resource, 11)"), '', "space in $relation: that holder is the first");
	like(ask($s, "SELECT lockfence.present($resource, 10)"), qr/LF001/, "space in $relation: and the one before is stale");
	decides("space in $relation");
}

# ---- no space for what is written

fill_disk(path_of('batch'));
refused_ok($node, 'postgres', qq{
	BEGIN; SELECT lockfence.present(21);
	INSERT INTO batch SELECT g, repeat('x', 100) FROM generate_series(1001, 2000) g; COMMIT},
	'53100', 'no space for rows');
query_is($node, 'postgres', q{SELECT count(*) FROM lockfence.mark WHERE token = 21}, 0, 'no space for rows: no mark is left');
decides('no space for rows');
free_disk();
query_is($node, 'postgres', 'SELECT count(*) FROM batch WHERE id > 1000', 0, 'no space for rows: nor are rows');

# ---- no space for the WAL: the server goes down, and comes back when there is

$_->{psql}->quit foreach ($s, $other);

# Advances until the server is gone; returns the last token that was acknowledged.
sub advance_until_crash
{
	foreach my $token (22 .. 1000)
	{
		my ($out, $err) = try_sql($node, 'postgres', "SELECT lockfence.present('batch-1', $token)");
		return $token - 1 if $err ne '';
		try_sql($node, 'postgres', 'SELECT pg_switch_wal()');
	}
	die 'the disk is never full';
}

query_is($node, 'postgres', "SELECT lockfence.present('batch-1', 21)", 20, 'space for WAL: an advance');
fill_disk('pg_wal/');
my $acknowledged = advance_until_crash();
foreach (1 .. 1800)
{
	last if !-e $node->data_dir . '/postmaster.pid';
	select(undef, undef, undef, 0.1);
}
like(slurp_file($node->logfile), qr/PANIC: .*could not write to file "pg_wal.*No space left on device/,
	'no space for WAL: the server goes down');
ok(!-e $node->data_dir . '/postmaster.pid', 'no space for WAL: and stays down');
free_disk();
$node->_update_pid(0);
$node->start;
note "acknowledged: $acknowledged";
query_is($node, 'postgres', "SELECT token BETWEEN $acknowledged AND $acknowledged + 1 FROM lockfence.mark WHERE resource = 'batch-1'",
	't', 'space for WAL: the last advance that was acknowledged is there');
refused_ok($node, 'postgres', "SELECT lockfence.present('batch-1', $acknowledged - 1)", 'LF001', 'space for WAL: a stale token is refused');
accepted_ok($node, 'postgres', "SELECT lockfence.present('batch-1', $acknowledged + 1)", 'space for WAL: the next one is accepted');
query_is($node, 'postgres', 'SELECT lockfence.present($$batch-1$$, 1001)', $acknowledged + 1, 'space for WAL: and the one after it');
my $version = server_version($node);
$node->stop;

# ---- no space for dynamic shared memory, which a server that does not preload the library takes

SKIP:
{
	skip 'shared memory comes by preloading alone', 3 if $version < 17;
	my $plain = fenced_node('plain', "dynamic_shared_memory_type = mmap\n");

	$plain->safe_psql('postgres', q{CREATE TABLE job (id int PRIMARY KEY, note text); SELECT lockfence.attach('job', 'jobs')});
	fill_disk('pg_dynshmem/');
	refused_ok($plain, 'postgres', q{BEGIN; SELECT lockfence.present('jobs', 10); COMMIT}, '53100', 'no shared memory: an advance is an error');
	free_disk();
	query_is($plain, 'postgres', "SELECT lockfence.present('jobs', 10)", '', 'shared memory again: the holder is the first');
	refused_ok($plain, 'postgres', "SELECT lockfence.present('jobs', 9)", 'LF001', 'shared memory again: a stale token is refused');
	$plain->stop;
}

done_testing();
