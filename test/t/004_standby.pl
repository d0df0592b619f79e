# A physical standby reads what the fence knows, says why it cannot fence a write, and goes on refusing the
# stale after promotion.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = fenced_node('primary', "shared_preload_libraries = 'lockfence'\n", allows_streaming => 1);

$primary->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	CREATE TABLE free (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
	SELECT lockfence.attach('job', 'jobs');
	SELECT lockfence.attach('doc');
	INSERT INTO batch VALUES (1, 'x', 10), (2, 'x', 10);
	BEGIN; SELECT lockfence.present(10); INSERT INTO job VALUES (1, 'x'); COMMIT;
	INSERT INTO doc VALUES (1, 'x', 10);
});
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

# The next holder, after the base backup.
$primary->safe_psql('postgres', q{
	SELECT lockfence.present('batch-1', 20), lockfence.present('jobs', 20);
	UPDATE doc SET fence = 20;
});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

# ---- what only reads

query_is($standby, 'postgres', q{SELECT lockfence.is_current('batch-1', 20), lockfence.is_current('batch-1', 19),
	lockfence.is_current('jobs', 21), lockfence.is_current('never seen', 1)}, 't|f|t|t', 'is_current() follows the primary');
query_is($standby, 'postgres', 'SELECT lockfence.make_token(1, 5), lockfence.token_epoch(281474976710661),
	lockfence.token_revision(281474976710661)', '281474976710661|1|5', 'token functions work');
query_is($standby, 'postgres', 'SELECT target, kind FROM lockfence.fences ORDER BY target::text',
	"batch|template\ndoc|row\njob|constant", 'lockfence.fences shows the fences');
query_is($standby, 'postgres', 'SELECT count(*) FROM lockfence.presented()', 0, 'presented() is empty');
query_is($standby, 'postgres', 'BEGIN; SELECT lockfence.present(20); SELECT token FROM lockfence.presented(); COMMIT',
	"\n20", 'an ambient token is remembered');
query_is($standby, 'postgres', 'SELECT count(*) FROM lockfence.prepared_holds', 0, 'lockfence.prepared_holds is empty');
query_is($standby, 'postgres', "SELECT lockfence.resource_of('batch', b) FROM batch b ORDER BY 1",
	"batch-1\nbatch-2", 'resource_of() works');
query_is($standby, 'postgres', 'SELECT count(*) FROM batch JOIN job USING (id) JOIN doc USING (id)', 1,
	'reading fenced tables takes no token');
query_is($standby, 'postgres', 'SELECT * FROM lockfence.verify()', '', 'verify() finds nothing');
query_is($standby, 'postgres', "SELECT code FROM lockfence.verify('free') WHERE target IS NOT NULL", 'guard_missing',
	'verify() finds what there is');
query_is($standby, 'postgres', 'SELECT state, recorded_timeline = timeline FROM lockfence.gate()', 'standby|t',
	'gate() says that it is one');
query_is($standby, 'postgres', 'SELECT available, refusals FROM lockfence.stats_info()', 't|0', 'statistics are its own');

# ---- what would write

my $READ_ONLY = qr/cannot execute .* (in a read-only transaction|during recovery)/;
my %writes = (
	'present(), higher' => "SELECT lockfence.present('batch-1', 30)",
	'present(), equal' => "SELECT lockfence.present('batch-1', 20)",
	'present(), stale' => "SELECT lockfence.present('batch-1', 10)",
	'present(), first' => "SELECT lockfence.present('never seen', 10)",
	'guarded_update(), higher' => q{SELECT lockfence.guarded_update('batch', '{"id": 1}', '{"note": "y"}', 30)},
	'guarded_update(), equal' => q{SELECT lockfence.guarded_update('batch', '{"id": 1}', '{"note": "y"}', 20)},
	'guarded_update(), by tuple' => q{SET lockfence.max_resource_locks = 0;
		SELECT lockfence.guarded_update('batch', '{"id": 1}', '{"note": "y"}', 20)},
	'guarded_update(), row fence' => q{SELECT lockfence.guarded_update('doc', '{"id": 1}', '{"note": "y"}', 20)},
	'guarded_delete()' => q{SELECT lockfence.guarded_delete('batch', '{"id": 1}', 20)},
	'raise_mark()' => "SELECT lockfence.raise_mark('batch-1', 30, 'test')",
	'reset_mark()' => "SELECT lockfence.reset_mark('batch-1', 30, 'test')",
	'attach()' => "SELECT lockfence.attach('free', 'free')",
	'attach(), row fence' => "SELECT lockfence.attach('free')",
	'detach()' => "SELECT lockfence.detach('batch')",
	'reopen()' => "SELECT lockfence.reopen(30, 'test')",
	'reset_floor()' => "SELECT lockfence.reset_floor(30, 'test')",
	'set_epoch()' => "SELECT lockfence.set_epoch(1, 'test')",
	'prune()' => "SELECT lockfence.prune('0')",
	'UPDATE' => 'UPDATE batch SET fence = 30');

foreach my $what (sort keys %writes)
{
	refused_ok($standby, 'postgres', $writes{$what}, '25006', "refused on a standby: $what", $READ_ONLY);
}
refused_ok($standby, 'postgres', q{SELECT lockfence.guarded_update('batch', '{"id": 1}', '{"note": "y"}', 10)},
	'LF001', 'guarded_update() with a stale token says so');
query_is($standby, 'postgres', "SELECT stale FROM lockfence.stats WHERE target = 'batch'::regclass", 1, 'and it is counted');
query_is($standby, 'postgres', 'SELECT code, target, resource, token, mark FROM lockfence.refusals', 'LF001|batch|batch-1|10|20',
	'and kept');

query_is($standby, 'postgres', "SELECT lockfence.reconcile('batch')", 0, 'reconcile() has nothing to raise');

# ---- a mark that a standby has looked at, and that the primary raises

refused_ok($standby, 'postgres', q{SELECT lockfence.guarded_update('batch', '{"id": 2}', '{"note": "y"}', 10)},
	'25006', 'the current token on a standby');
$primary->safe_psql('postgres', q{SELECT lockfence.present('batch-2', 20)});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

# ---- after promotion

$primary->stop('immediate');
$standby->promote;
my %stale = (
	'named fence' => 'UPDATE batch SET fence = 10 WHERE id = 1',
	'constant fence' => 'BEGIN; SELECT lockfence.present(10); DELETE FROM job; COMMIT',
	'row fence' => 'UPDATE doc SET fence = 10');

foreach my $what (sort keys %stale)
{
	refused_ok($standby, 'postgres', $stale{$what}, 'LF001', "promoted: stale token is refused: $what");
	(my $current = $stale{$what}) =~ s/10/20/;
	accepted_ok($standby, 'postgres', $current, "promoted: current token is accepted: $what");
}
refused_ok($standby, 'postgres', q{SELECT lockfence.guarded_update('batch', '{"id": 2}', '{"note": "y"}', 10)},
	'LF001', 'promoted: a token that was current when the standby last looked');
query_is($standby, 'postgres', "SELECT lockfence.present('batch-1', 30)", 20, 'promoted: the next holder takes over');

done_testing();
