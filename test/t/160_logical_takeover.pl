# A subscriber takes over from its publisher, as docs/operations.md says.  A grant that the publisher knows by
# present() alone, with no row that carries its token, is known to the subscriber if marks and state are
# published too; if not, verify() says so, and reopen() shuts the stale holder out.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = fenced_node('publisher', '', allows_streaming => 'logical');
my $subscriber = fenced_node('subscriber', "max_logical_replication_workers = 12\nmax_worker_processes = 20\n", allows_streaming => 'logical');
my $SCHEMA = q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE part (k int PRIMARY KEY, note text) PARTITION BY LIST (k);
	CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence'), lockfence.attach('part', 'part-{k}', 'fence'),
		lockfence.attach('job', 'jobs'), lockfence.attach('doc');
};

# One subscriber takes the marks, the other does not.
$publisher->safe_psql('postgres', $SCHEMA . q{
	CREATE PUBLICATION rows_alone FOR TABLE batch, part, job, doc;
	CREATE PUBLICATION whole FOR TABLE batch, part, job, doc, lockfence.mark, lockfence.state;
});
my $connection = 'host=' . $publisher->host . ' port=' . $publisher->port . ' dbname=postgres';
foreach my $name ('rows_alone', 'whole')
{
	$subscriber->safe_psql('postgres', "CREATE DATABASE $name");
	$subscriber->safe_psql($name, "CREATE EXTENSION lockfence; $SCHEMA");
	$subscriber->safe_psql($name, "CREATE SUBSCRIPTION $name CONNECTION '$connection' PUBLICATION $name");
	$subscriber->wait_for_subscription_sync($publisher, $name, $name);
}

# Holder 42 writes, and holder 43 takes over.  Of a row fence the takeover is a write to the row.
$publisher->safe_psql('postgres', q{
	INSERT INTO batch VALUES (1, 'x', 42);
	INSERT INTO part VALUES (1, 'x', 42);
	INSERT INTO doc VALUES (1, 'x', 42);
	BEGIN; SELECT lockfence.present('jobs', 42); INSERT INTO job VALUES (1, 'x'); COMMIT;
	SELECT lockfence.present(resource, 43) FROM unnest(ARRAY['batch-1', 'part-1', 'jobs']) AS resource;
	UPDATE doc SET fence = 43;
});
$publisher->wait_for_catchup($_) foreach ('rows_alone', 'whole');

my $FOUND = q{SELECT string_agg(severity || ' ' || target, ', ' ORDER BY target::text)
	FROM lockfence.verify() WHERE code = 'marks_not_replicated'};
query_is($subscriber, 'rows_alone', $FOUND, 'error batch, error job, error part', 'verify() finds the named fences whose marks do not arrive');
query_is($subscriber, 'whole', $FOUND, '', 'and none where they do');
query_is($publisher, 'postgres', $FOUND, '', 'nor on the publisher');
$subscriber->safe_psql('rows_alone', 'CREATE ROLE app; GRANT USAGE ON SCHEMA lockfence TO app; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lockfence TO app');
query_is($subscriber, 'rows_alone', "SET ROLE app; SELECT problem FROM lockfence.verify('part') WHERE code = 'marks_not_replicated'",
	'public.part arrives by a subscription, and lockfence.mark and lockfence.state do not: a takeover by lockfence.present() is not known here, and its stale token would pass.',
	'also for a role that is no superuser');

# ---- marks that come later, or by another subscription; a partitioned table that arrives by its root

$publisher->safe_psql('postgres', q{
	CREATE PUBLICATION by_root FOR TABLE batch, part WITH (publish_via_partition_root = true);
	CREATE PUBLICATION marks FOR TABLE lockfence.mark, lockfence.state;
});
$subscriber->safe_psql('postgres', 'CREATE DATABASE split');
$subscriber->safe_psql('split', "CREATE EXTENSION lockfence; $SCHEMA");
$subscriber->safe_psql('split', "CREATE SUBSCRIPTION split_rows CONNECTION '$connection' PUBLICATION by_root");
$subscriber->wait_for_subscription_sync($publisher, 'split_rows', 'split');
query_is($subscriber, 'split', $FOUND, 'error batch, error part', 'by its root: the partitioned table is found');

my $blocker = session($subscriber, 'split');
ask($blocker, 'BEGIN; LOCK TABLE lockfence.mark IN SHARE MODE');
$subscriber->safe_psql('split', "CREATE SUBSCRIPTION split_marks CONNECTION '$connection' PUBLICATION marks");
$subscriber->poll_query_until('split', "SELECT srsubstate = 'd' FROM pg_subscription_rel WHERE srrelid = 'lockfence.mark'::regclass")
  or die 'the marks are not being copied';
query_is($subscriber, 'split', $FOUND, 'error batch, error part', 'marks that are still being copied do not count');
ask($blocker, 'COMMIT');
$subscriber->wait_for_subscription_sync($publisher, 'split_marks', 'split');
mark_is($subscriber, 'split', 'batch-1', 43, 'they have come');
query_is($subscriber, 'split', $FOUND, 'warning batch, warning part', 'by another subscription, which may be of another publisher');

$publisher->safe_psql('postgres', 'ALTER PUBLICATION by_root ADD TABLE lockfence.mark, lockfence.state');
$subscriber->safe_psql('split', 'ALTER SUBSCRIPTION split_rows REFRESH PUBLICATION');
$subscriber->wait_for_subscription_sync($publisher, 'split_rows', 'split');
query_is($subscriber, 'split', $FOUND, '', 'by their own, once it was refreshed: nothing is found');
$subscriber->safe_psql('split', 'DROP SUBSCRIPTION split_rows; DROP SUBSCRIPTION split_marks');

# ---- a holder on the subscriber

my $holder = session($subscriber, 'whole');
ask($holder, "BEGIN; SELECT lockfence.present('batch-1', 43)");
$publisher->safe_psql('postgres', "SELECT lockfence.present('batch-1', 44); UPDATE doc SET note = 'after', fence = 43");
$subscriber->poll_query_until('whole', "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)") or die 'the worker does not wait';
query_is($subscriber, 'whole', 'SELECT note FROM doc', 'x', 'a holder on the subscriber keeps the apply worker waiting');
ask($holder, 'COMMIT');
$publisher->wait_for_catchup('whole');
query_is($subscriber, 'whole', 'SELECT note FROM doc', 'after', 'until its transaction ends');
mark_is($subscriber, 'whole', 'batch-1', 44, 'and then the mark rises');

# ---- the takeover

foreach my $name ('rows_alone', 'whole')
{
	$publisher->wait_for_catchup($name);
	$subscriber->safe_psql($name, "DROP SUBSCRIPTION $name");
	$subscriber->safe_psql($name, 'SELECT lockfence.reconcile(target) FROM lockfence.fences');
}
my %STALE = (
	template => "INSERT INTO batch VALUES (1, 'stale', 42) ON CONFLICT (id) DO UPDATE SET fence = 42",
	partitions => "UPDATE part SET fence = 42",
	constant => "SELECT lockfence.present('jobs', 42); UPDATE job SET note = 'stale'",
);

foreach my $what (sort keys %STALE)
{
	refused_ok($subscriber, 'whole', "BEGIN; $STALE{$what}; COMMIT", 'LF001', "with marks: a stale token is refused: $what");
	accepted_ok($subscriber, 'rows_alone', "BEGIN; $STALE{$what}; ROLLBACK", "without marks: it passes: $what");
}
$subscriber->safe_psql('rows_alone', "SELECT lockfence.reopen(44, 'test')");
foreach my $what (sort keys %STALE)
{
	refused_ok($subscriber, 'rows_alone', "BEGIN; $STALE{$what}; COMMIT", 'LF001', "without marks: it is refused after reopen(): $what");
}
refused_ok($subscriber, $_, 'UPDATE doc SET fence = 42', 'LF001', "$_: a row fence needs no marks") foreach ('rows_alone', 'whole');
accepted_ok($subscriber, $_, "UPDATE part SET fence = 44", "$_: a current one is accepted") foreach ('rows_alone', 'whole');

done_testing();
