# Resources that a transaction holds by the fast path, without the lock manager: where that is done, that it excludes an
# advance to the very end, and that nothing of it is left behind.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# the first session has the first slots: no launcher has taken them
my $node = fenced_node('fast', "max_logical_replication_workers = 0\nshared_preload_libraries = 'lockfence'\nmax_prepared_transactions = 0\nrestart_after_crash = on\n", allows_streaming => 1);

$node->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}');
	BEGIN;
	SELECT lockfence.present(10);
	INSERT INTO batch SELECT generate_series(1, 20);
	COMMIT;
});

my $holder = session($node, 'postgres');
my $other = session($node, 'postgres');

# How a session holds a resource: 't' for each lock that pg_locks shows, and its slots.
sub held_is
{
	my ($session, $locks, $slots, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, 'postgres', "SELECT count(*) FROM pg_locks WHERE pid = $session->{pid} AND locktype = 'advisory' AND objsubid = 19526",
		$locks, "$name: locks");
	query_is($node, 'postgres', "SELECT count(*) FROM lockfence.mark WHERE $session->{pid} = ANY (lockfence._fast_path_holders(resource))",
		$slots, "$name: slots");
	return;
}

sub holders_are
{
	my ($resource, $pids, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, 'postgres', "SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM lockfence.holders('$resource')", $pids, $name);
	return;
}

# ---- what is held by the fast path

ask($holder, q{BEGIN; SELECT lockfence.present('batch-1', 10)});
held_is($holder, 0, 1, 'the first resource');
holders_are('batch-1', $holder->{pid}, 'holders() names its process');
holders_are('batch-2', '', 'and no process for another resource');
ask($other, q{BEGIN; SELECT lockfence.present('batch-1', 10)});
holders_are('batch-1', join(' ', sort { $a <=> $b } $holder->{pid}, $other->{pid}), 'two may hold it');
ask($other, 'COMMIT');
ask($holder, q{SELECT lockfence.present('batch-' || g, 10) FROM generate_series(2, 9) g});
held_is($holder, 3, 6, 'nine resources');
holders_are('batch-9', $holder->{pid}, 'holders() names who holds by a lock');
ask($holder, 'COMMIT');
held_is($holder, 0, 0, 'after COMMIT');
ask($holder, q{BEGIN; SELECT lockfence.present('batch-1', 10); ROLLBACK});
held_is($holder, 0, 0, 'after ROLLBACK');

# ---- subtransactions: ROLLBACK TO SAVEPOINT lets go, and wakes who waits

ask($holder, q{BEGIN; SAVEPOINT s; SELECT lockfence.present('batch-1', 10)});
held_is($holder, 1, 0, 'in a subtransaction');
start_blocked($other, q{SELECT lockfence.present('batch-1', 11)});
ask($holder, 'ROLLBACK TO s');
is(finish_blocked($other), '10', 'an advance goes on after ROLLBACK TO SAVEPOINT');
ask($holder, 'COMMIT');

# ---- an advance waits for the end

ask($holder, q{BEGIN; SELECT lockfence.present('batch-2', 10); UPDATE batch SET note = 'x' WHERE id = 2});
start_blocked($other, q{SELECT lockfence.present('batch-2', 11)});
is(ask($holder, q{UPDATE batch SET note = 'y' WHERE id = 2}), '', 'the holder goes on meanwhile');
ask($holder, 'COMMIT');
is(finish_blocked($other), '10', 'an advance waits for a fast-path holder');
refused_ok($node, 'postgres', q{SELECT lockfence.present('batch-2', 10)}, 'LF001', 'who is stale then');

# A commit that waits for a standby, which never answers here, is not over yet.
$node->append_conf('postgresql.conf', "synchronous_standby_names = 'missing'");
$node->restart;
$holder = session($node, 'postgres');
$other = session($node, 'postgres');
ask($holder, q{BEGIN; SELECT lockfence.present('batch-3', 10); UPDATE batch SET note = 'x' WHERE id = 3});
$holder->{psql}->query_until(qr/^started$/m, "\\echo started\nCOMMIT;\n");
$node->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $holder->{pid}")
  or die 'the commit does not wait';
start_blocked($other, q{SELECT lockfence.present('batch-3', 11)});
holders_are('batch-3', $holder->{pid}, 'who waits for the standby to commit still holds');
$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$node->reload;
finish_blocked($holder);
is(finish_blocked($other), '10', 'an advance waits for the end of a commit');

# ---- a strong lock is gone with the error that ends its wait

ask($holder, q{BEGIN; SELECT lockfence.present('batch-4', 10)});
ask($other, q{SET lock_timeout = '10ms'});
like(ask($other, q{SELECT lockfence.present('batch-4', 11)}), qr/ERROR:  55P03:.*CONTEXT:  .*while waiting for other holders of resource "batch-4"/s,
	'lock_timeout ends the wait');
ask($holder, 'COMMIT; BEGIN');
ask($holder, q{SELECT lockfence.present('batch-4', 10)});
held_is($holder, 0, 1, 'after an advance that gave up');
like(ask($other, q{BEGIN; SAVEPOINT s; SELECT lockfence.present('batch-4', 11)}), qr/ERROR:  55P03:/, 'so in a subtransaction');
ask($other, 'ROLLBACK TO s');
ask($holder, 'COMMIT; BEGIN');
ask($holder, q{SELECT lockfence.present('batch-4', 10)});
held_is($holder, 0, 1, 'after one that was caught by a savepoint');
ask($holder, 'COMMIT');
is(ask($other, q{SELECT lockfence.present('batch-4', 11)}), '10', 'who can advance in the same transaction');
ask($other, 'COMMIT; RESET lock_timeout');

# ---- a holder's process ends

ask($holder, q{BEGIN; SELECT lockfence.present('batch-5', 10)});
start_blocked($other, q{SELECT lockfence.present('batch-5', 11)});
$node->safe_psql('postgres', "SELECT pg_terminate_backend($holder->{pid})");
is(finish_blocked($other), '10', 'an advance waits no longer for a session that was terminated');
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $holder->{pid}") or die 'not terminated';

# a session that comes into its place holds what it holds itself, and nothing else
$holder = session($node, 'postgres');
holders_are('batch-5', '', 'no process holds the resource');
ask($holder, q{BEGIN; SELECT lockfence.present('batch-6', 10)});
held_is($holder, 0, 1, 'in a place that was used before');
ask($other, q{BEGIN; SELECT lockfence.present('batch-7', 10)});

# ---- the server crashes

kill('KILL', $holder->{pid}) == 1 or die 'not killed';
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM lockfence.mark WHERE lockfence._fast_path_holders(resource) <> '{}'})
  or die 'the server does not come back';
$other = session($node, 'postgres');
is(ask($other, q{SELECT lockfence.present('batch-6', 11)}), '10', 'nothing is held after a crash');

# ---- where transactions can be prepared, all is held by locks

$node->append_conf('postgresql.conf', 'max_prepared_transactions = 2');
$node->restart;
$holder = session($node, 'postgres');
ask($holder, q{BEGIN; SELECT lockfence.present('batch-7', 10)});
held_is($holder, 1, 0, 'with max_prepared_transactions');
ask($holder, q{PREPARE TRANSACTION 'p'});
query_is($node, 'postgres', q{SELECT pid IS NULL, gid FROM lockfence.holders('batch-7'), lockfence.prepared_holds}, 't|p',
	'a prepared transaction holds without a process');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});

done_testing();
