# The lock table is full: a clear error, and the fence is right during it and afterwards.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# As small as it gets, and with prepared transactions, with which nothing is held by the fast path.
my $node = fenced_node('locks', "max_locks_per_transaction = 10\nmax_connections = 10\nmax_wal_senders = 0\n"
	  . "max_worker_processes = 0\nmax_parallel_workers = 0\nmax_prepared_transactions = 1\n");

my $OUT_OF_LOCKS = qr/ERROR:  53200: out of shared memory\nHINT:  You might need to increase "?max_locks_per_transaction/;
my $FENCE_LOCKS = q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 19526};

$node->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}');
	CREATE TABLE job (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('job', 'jobs');
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	INSERT INTO doc VALUES (1);
	SELECT lockfence.attach('doc');
	BEGIN;
	SELECT lockfence.present(20);
	INSERT INTO batch SELECT generate_series(1, 5000);
	INSERT INTO job VALUES (1);
	UPDATE doc SET note = '';
	COMMIT;
});

my $s = session($node, 'postgres');
my $other = session($node, 'postgres');

# ---- one transaction with more resources than there are locks

sub hold_all { return ask($s, q{UPDATE batch SET note = 'x'}); }

ask($s, 'BEGIN; SELECT lockfence.present(20)');
is(hold_all(), '', 'by default a transaction can hold more resources than there are locks');
cmp_ok(ask($s, $FENCE_LOCKS), '<=', 64, 'by few locks');
ask($s, 'ROLLBACK');

ask($s, 'SET lockfence.max_resource_locks = 100000; BEGIN; SELECT lockfence.present(20)');
like(hold_all(), $OUT_OF_LOCKS, 'with lockfence.max_resource_locks out of bounds it runs out of them');
is(ask($other, $FENCE_LOCKS), 0, 'and has none left after the error');
ask($s, 'ROLLBACK');
is(ask($s, q{SELECT count(*) FROM batch WHERE note = 'x'}), 0, 'nothing was written');
is(ask($other, "SELECT lockfence.present('batch-1', 21)"), 20, 'another holder can take over');
like(ask($s, "SELECT lockfence.present('batch-1', 20)"), qr/LF001/, 'and the one before is stale');

# In a savepoint, the locks taken before it are kept.
ask($s, "BEGIN; SELECT lockfence.present('batch-2', 20); SAVEPOINT s; SELECT lockfence.present(20)");
like(ask($s, q{UPDATE batch SET note = 'x' WHERE id > 1}), $OUT_OF_LOCKS, 'the same in a savepoint');
is(ask($s, 'ROLLBACK TO s'), '', 'which is undone');
is(ask($other, $FENCE_LOCKS), 1, 'what was held before it is still held');
ask($other, "SET lock_timeout = '100ms'");
like(ask($other, "SELECT lockfence.present('batch-2', 21)"), qr/55P03/, 'against everybody else');
is(ask($other, "SELECT lockfence.present('batch-5000', 21)"), 20, 'and the rest is free');
is(ask($s, 'COMMIT; RESET lockfence.max_resource_locks'), '', 'the transaction commits');

# ---- another session has taken all of them

my $hog = session($node, 'postgres');
ask($hog, q{
	CREATE FUNCTION hog() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. 100000 LOOP
			PERFORM pg_advisory_lock(i);
		END LOOP;
	EXCEPTION WHEN out_of_memory THEN
		NULL;
	END
	$$});

# Each call takes what the last one had to give back; at last, there is none.
sub take_all_locks
{
	ask($hog, 'SELECT hog()');
	ask($hog, 'SELECT pg_advisory_lock(-i) FROM generate_series(1, 100000) i');
	return;
}

take_all_locks();
note ask($other, q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'});

my @attempts = (
	[ 'an equal token' => "SELECT lockfence.present('batch-3', 20)" ],
	[ 'a higher token' => "SELECT lockfence.present('batch-3', 30)" ],
	[ 'a first token' => "SELECT lockfence.present('batch-new', 30)" ],
	[ 'a write' => "BEGIN; SELECT lockfence.present(30); UPDATE batch SET note = 'y' WHERE id = 3; COMMIT" ],
	[ 'a write to a constant fence' => "BEGIN; SELECT lockfence.present(30); UPDATE job SET note = 'y'; COMMIT" ],
	[ 'a write to a row fence' => "UPDATE doc SET note = 'y', fence = 30" ],
	[ 'a guarded write' => q{SELECT lockfence.guarded_update('batch', '{"id": 3}', '{"note": "y"}', 30)} ],
	[ 'raise_mark()' => "SELECT lockfence.raise_mark('batch-3', 40, 'test')" ],
	[ 'reset_mark()' => "SELECT lockfence.reset_mark('batch-3', 10, 'test')" ],
);

foreach my $attempt (@attempts)
{
	my ($what, $sql) = @$attempt;

	like(ask($s, $sql), $OUT_OF_LOCKS, "no locks left: $what is refused, and why");
	ask($s, 'ROLLBACK');
}
like(ask($s, "SELECT lockfence.present('batch-3', 19)"), qr/LF001/, 'no locks left: a stale token is refused as such');

ask($hog, 'SELECT pg_advisory_unlock_all()');
mark_is($node, 'postgres', 'batch-3', 20, 'locks again: the mark is as it was');
mark_is($node, 'postgres', 'batch-new', '', 'locks again: none was made');
mark_is($node, 'postgres', 'jobs', 20, 'locks again: the constant fence has its mark');
query_is($node, 'postgres', 'SELECT note, fence FROM doc', '|20', 'locks again: the row fence has its token');
query_is($node, 'postgres', q{SELECT count(*) FROM batch WHERE note = 'y'}, 0, 'locks again: nothing was written');
like(ask($s, "SELECT lockfence.present('batch-3', 19)"), qr/LF001/, 'locks again: a stale token is refused');
foreach my $attempt (@attempts)
{
	my ($what, $sql) = @$attempt;

	unlike(ask($s, $sql), qr/ERROR/, "locks again: $what is accepted");
}
$_->{psql}->quit foreach ($s, $other, $hog);

# ---- the fast path takes no lock

$node->append_conf('postgresql.conf', "max_prepared_transactions = 0\nshared_preload_libraries = 'lockfence'");
$node->restart;
($s, $hog) = map { session($node, 'postgres') } 1 .. 2;
ask($s, "SELECT lockfence.present('batch-7', 20)");
take_all_locks();
is(ask($s, "SELECT lockfence.present('batch-7', 20)"), 20, 'fast path: an equal token is accepted without a lock to be had');
like(ask($s, "SELECT lockfence.present('batch-7', 30)"), $OUT_OF_LOCKS, 'fast path: a higher one is not');
like(ask($s, "SELECT lockfence.present('batch-7', 19)"), qr/LF001/, 'fast path: a stale one is refused as such');
$_->{psql}->quit foreach ($s, $hog);

done_testing();
