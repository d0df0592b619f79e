# Logical replication: the publisher has decided.  Its subscriber accepts what arrives, whatever its own
# marks say, and remembers it, so that it refuses the stale once it is on its own.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = fenced_node('publisher', '', allows_streaming => 'logical');
my $subscriber = fenced_node('subscriber', '', allows_streaming => 'logical');

# The same tables and fences on both sides; job has no token column, so its marks travel as marks.
my $SCHEMA = q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	CREATE TABLE part (k int PRIMARY KEY, note text) PARTITION BY LIST (k);
	CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
	CREATE TABLE ticket (id int PRIMARY KEY, note text);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	CREATE TABLE once (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
	SELECT lockfence.attach('doc');
	SELECT lockfence.attach('part', 'part-{k}', 'fence');
	SELECT lockfence.attach('ticket', 'tickets', 'fence');
	SELECT lockfence.attach('job', 'jobs');
	SELECT lockfence.attach('once', 'once-{id}', 'fence', repeat => 'reject');
};
$publisher->safe_psql('postgres', $SCHEMA);
$subscriber->safe_psql('postgres', $SCHEMA);

$publisher->safe_psql('postgres', q{
	INSERT INTO batch VALUES (1, 'x', 10), (2, 'x', 10), (3, 'x', 10);
	INSERT INTO doc VALUES (1, 'x', 10);
	INSERT INTO part VALUES (1, 'x', 10);
	INSERT INTO ticket VALUES (1, 'x', 10);
	INSERT INTO once VALUES (1, 'x', 10);
	BEGIN; SELECT lockfence.present(10); INSERT INTO job VALUES (1, 'x'); COMMIT;
	SELECT lockfence.present('old', 3);
	CREATE PUBLICATION fenced FOR TABLE batch, doc, part, ticket, job, once;
	CREATE PUBLICATION marks FOR TABLE lockfence.mark, lockfence.state;
});

# Marks of its own, one of them higher than anything that will come.
$subscriber->safe_psql('postgres', q{
	SELECT lockfence.present('batch-2', 90), lockfence.present('batch-3', 5), lockfence.present('jobs', 4);
	SELECT lockfence.set_epoch(0, 'test');
});
my $connection = 'host=' . $publisher->host . ' port=' . $publisher->port . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION fenced CONNECTION '$connection' PUBLICATION fenced");
$subscriber->wait_for_subscription_sync($publisher, 'fenced');

sub mark_list
{
	my ($expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($subscriber, 'postgres', "SELECT string_agg(resource || '=' || token, ' ' ORDER BY resource)
		FROM lockfence.mark", $expected, $name);
	return;
}

# ---- the initial copy

query_is($subscriber, 'postgres', 'SELECT count(*) FROM batch JOIN doc USING (id) JOIN ticket USING (id) JOIN job USING (id) JOIN once USING (id)',
	1, 'initial copy: rows are there');
query_is($subscriber, 'postgres', 'SELECT id, fence FROM batch ORDER BY id', "1|10\n2|10\n3|10",
	'initial copy: with the tokens of the publisher');
mark_list('batch-1=10 batch-2=90 batch-3=10 jobs=4 once-1=10 part-1=10 tickets=10',
	'initial copy: marks rise to what arrived, and no mark goes down');

# ---- changes

$publisher->safe_psql('postgres', q{
	UPDATE batch SET fence = 20, note = 'y' WHERE id = 1;
	UPDATE batch SET fence = 20, note = 'y' WHERE id = 2;
	INSERT INTO batch VALUES (4, 'x', 20);
	BEGIN; SELECT lockfence.present(20); DELETE FROM batch WHERE id = 3; COMMIT;
	UPDATE doc SET fence = 20;
	UPDATE part SET fence = 20;
	INSERT INTO ticket VALUES (2, 'x', 20);
	BEGIN; SELECT lockfence.present(20); UPDATE job SET note = 'y'; COMMIT;
	UPDATE once SET fence = 20;
	BEGIN;
	UPDATE batch SET fence = 20, note = 'z' WHERE id = 1;
	ROLLBACK;
});
$publisher->wait_for_catchup('fenced');
query_is($subscriber, 'postgres', 'SELECT * FROM batch ORDER BY id', "1|y|20\n2|y|20\n4|x|20",
	'changes: the apply worker does not stall at a higher mark');
query_is($subscriber, 'postgres', 'SELECT (SELECT fence FROM doc), (SELECT fence FROM part), (SELECT note FROM job), (SELECT fence FROM once)',
	'20|20|y|20', 'changes: nor at any other kind of fence');
mark_list('batch-1=20 batch-2=90 batch-3=10 batch-4=20 jobs=4 once-1=20 part-1=20 tickets=20',
	'changes: marks rise to what arrived, and no mark goes down');

# ---- marks and state as published tables

$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION marks CONNECTION '$connection' PUBLICATION marks");
$subscriber->wait_for_subscription_sync($publisher, 'marks');
mark_list('batch-1=20 batch-2=90 batch-3=20 batch-4=20 jobs=20 old=3 once-1=20 part-1=20 tickets=20',
	'published marks: the initial copy merges');
$publisher->safe_psql('postgres', q{
	SELECT lockfence.present('jobs', 30), lockfence.present('batch-2', 30), lockfence.present('new', 1);
	SELECT lockfence.set_epoch(0, 'test');
	SELECT lockfence.reset_mark('batch-1', 5, 'test');
	SELECT lockfence.raise_mark('fenced out', 30, 'test');
});
$publisher->wait_for_catchup('marks');
mark_list('batch-1=20 batch-2=90 batch-3=20 batch-4=20 fenced out=30 jobs=30 new=1 old=3 once-1=20 part-1=20 tickets=20',
	'published marks: changes merge, and no mark goes down');
query_is($subscriber, 'postgres', "SELECT name, value FROM lockfence.state WHERE name NOT LIKE 'timeline:%'", 'epoch|0',
	'published state: merges with an epoch of its own');

# The publisher folds its marks; the subscriber keeps them, and takes the floor.
$publisher->safe_psql('postgres', "SELECT lockfence.prune('0')");
$publisher->wait_for_catchup('marks');
mark_list('batch-1=20 batch-2=90 batch-3=20 batch-4=20 fenced out=30 jobs=30 new=1 old=3 once-1=20 part-1=20 tickets=20',
	'published marks: folding there removes nothing here');
query_is($subscriber, 'postgres', "SELECT name, value FROM lockfence.state WHERE name NOT LIKE 'timeline:%' ORDER BY 1", "epoch|0\nfloor|30",
	'published state: the floor arrives');

# ---- TRUNCATE

refused_ok($publisher, 'postgres', 'TRUNCATE batch', 'LF009', 'TRUNCATE is refused on the publisher');
$publisher->safe_psql('postgres', 'SET lockfence.bypass = on; TRUNCATE batch, part');
$publisher->safe_psql('postgres', 'BEGIN; SELECT lockfence.present(30); TRUNCATE job; COMMIT');
$publisher->wait_for_catchup('fenced');
query_is($subscriber, 'postgres', 'SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM part), (SELECT count(*) FROM job)',
	'0|0|0', 'but follows where the publisher has done it');
query_is($subscriber, 'postgres', "SELECT count(*) FROM pg_stat_subscription WHERE pid IS NULL", 0, 'both workers are running');

# ---- the subscriber on its own

$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION fenced; DROP SUBSCRIPTION marks');
my %stale = (
	'named fence' => "INSERT INTO batch VALUES (4, 'stale', 19)",
	'own mark' => "INSERT INTO batch VALUES (2, 'stale', 89)",
	'row fence' => 'UPDATE doc SET fence = 19',
	'partitioned table' => "INSERT INTO part VALUES (1, 'stale', 19)",
	'constant fence with a token column' => 'UPDATE ticket SET fence = 19',
	'constant fence' => "BEGIN; SELECT lockfence.present(29); INSERT INTO job VALUES (1, 'stale'); COMMIT",
	'single use' => 'UPDATE once SET fence = 20',
	'force-release' => "SELECT lockfence.present('fenced out', 29)");

foreach my $what (sort keys %stale)
{
	refused_ok($subscriber, 'postgres', $stale{$what}, 'LF001', "on its own: stale token is refused: $what");
}
refused_ok($subscriber, 'postgres', 'DELETE FROM doc', 'LF002', 'on its own: a missing token as well');
accepted_ok($subscriber, 'postgres', "INSERT INTO batch VALUES (4, 'current', 20)", 'on its own: current token is accepted');

done_testing();
