# Logical replication in its less usual forms: large transactions that are streamed before they commit, prepared
# ones, filtered rows and columns, every table published; a subscriber whose own gate is shut; and one that
# becomes the publisher.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = fenced_node('publisher', "logical_decoding_work_mem = 64kB\n", allows_streaming => 'logical');
plan skip_all => 'row filters, column lists and prepared transactions came with 15' if server_version($publisher) < 15;
my $subscriber = fenced_node('subscriber', '', allows_streaming => 'logical');

my $SCHEMA = q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	CREATE TABLE ticket (id int PRIMARY KEY, note text);
	CREATE TABLE hidden (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence'), lockfence.attach('doc'),
		lockfence.attach('ticket', 'tickets', 'fence'), lockfence.attach('hidden', 'hidden-{id}', 'fence');
};
$_->safe_psql('postgres', $SCHEMA) foreach ($publisher, $subscriber);
$publisher->safe_psql('postgres', q{
	INSERT INTO batch SELECT i, 'x', 10 FROM generate_series(1, 200) i;
	INSERT INTO doc VALUES (1, 'x', 10);
	INSERT INTO hidden VALUES (1, 'x', 10);
	CREATE PUBLICATION fenced FOR TABLE batch WHERE (id <= 100), doc, ticket, hidden (id, note);
});
$subscriber->safe_psql('postgres', "SELECT lockfence.present('hidden-1', 7)");
my $connection = 'host=' . $publisher->host . ' port=' . $publisher->port . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION fenced CONNECTION '$connection' PUBLICATION fenced
	WITH (streaming = on, two_phase = on)");
$subscriber->wait_for_subscription_sync($publisher, 'fenced');

my $MARKS = "SELECT count(*), min(token), max(token) FROM lockfence.mark WHERE resource LIKE 'batch-%'";

# ---- the initial copy, of some rows and columns

query_is($subscriber, 'postgres', 'SELECT count(*), min(fence), max(fence) FROM batch', '100|10|10', 'row filter: some rows are copied');
query_is($subscriber, 'postgres', $MARKS, '100|10|10', 'row filter: with their marks, and no others');
query_is($subscriber, 'postgres', 'SELECT id, note, fence FROM hidden', '1|x|', 'column list: no tokens come');
mark_is($subscriber, 'postgres', 'hidden-1', 7, 'column list: so the marks stay');

# ---- large transactions, streamed

$publisher->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO ticket SELECT i, repeat('x', 100), 20 FROM generate_series(1, 3000) i;
	UPDATE batch SET fence = 20;
	SAVEPOINT s;
	SELECT lockfence.present('batch-2', 30);
	UPDATE batch SET fence = 30 WHERE id = 2;
	ROLLBACK TO s;
	COMMIT;
	BEGIN;
	INSERT INTO ticket SELECT i, repeat('y', 100), 40 FROM generate_series(3001, 6000) i;
	ROLLBACK;
});
$publisher->wait_for_catchup('fenced');
cmp_ok($publisher->safe_psql('postgres', 'SELECT stream_txns FROM pg_stat_replication_slots'), '>=', 1, 'streamed: it was');
query_is($subscriber, 'postgres', 'SELECT count(*), max(fence) FROM ticket', '3000|20', 'streamed: rows arrive');
mark_is($subscriber, 'postgres', 'tickets', 20, 'streamed: the mark of a constant fence rises, not to what was rolled back');
query_is($subscriber, 'postgres', $MARKS, '100|20|20', 'streamed: those of a template fence, too');

# ---- prepared

$publisher->safe_psql('postgres', q{
	BEGIN;
	UPDATE batch SET fence = 30 WHERE id = 1;
	UPDATE doc SET fence = 30;
	PREPARE TRANSACTION 'takeover';
});
$publisher->wait_for_catchup('fenced');
query_is($subscriber, 'postgres', 'SELECT count(*) FROM pg_prepared_xacts', 1, 'two-phase: it arrives prepared');
mark_is($subscriber, 'postgres', 'batch-1', 20, 'two-phase: the mark is still the old one');
my $local = session($subscriber, 'postgres');
start_blocked($local, "INSERT INTO batch VALUES (1, 'stale', 25)");
$publisher->safe_psql('postgres', "COMMIT PREPARED 'takeover'");
like(finish_blocked($local), qr/ERROR:  LF001:/, 'two-phase: a local write waits for it, and is then stale');
mark_is($subscriber, 'postgres', 'batch-1', 30, 'two-phase: the mark has risen');
query_is($subscriber, 'postgres', 'SELECT fence FROM doc', 30, 'two-phase: and the row');
$publisher->safe_psql('postgres', q{
	BEGIN;
	UPDATE batch SET fence = 40 WHERE id = 2;
	PREPARE TRANSACTION 'given up';
	ROLLBACK PREPARED 'given up';
});
$publisher->wait_for_catchup('fenced');
mark_is($subscriber, 'postgres', 'batch-2', 20, 'two-phase: what is rolled back leaves no mark');

# ---- rows that come into the filter and leave it

$publisher->safe_psql('postgres', q{
	BEGIN; SELECT lockfence.present(30); UPDATE batch SET id = 99999 WHERE id = 3; COMMIT;
	BEGIN; SELECT lockfence.present(30); DELETE FROM batch WHERE id = 4; UPDATE batch SET id = 4 WHERE id = 150; COMMIT;
});
$publisher->wait_for_catchup('fenced');
query_is($subscriber, 'postgres', 'SELECT count(*) FROM batch WHERE id = 3', 0, 'row filter: a row that leaves is deleted');
query_is($subscriber, 'postgres', 'SELECT fence FROM batch WHERE id = 4', 30, 'row filter: one that comes in is inserted');
mark_is($subscriber, 'postgres', 'batch-4', 30, 'row filter: with its mark');

# ---- a subscriber that is sealed: the publisher's decisions arrive all the same

$subscriber->safe_psql('postgres', "UPDATE lockfence.state SET value = value + 1000 WHERE name LIKE 'timeline:%'");
refused_ok($subscriber, 'postgres', 'UPDATE batch SET fence = 50 WHERE id = 1', 'LF005', 'sealed: a local write is refused');
$publisher->safe_psql('postgres', 'UPDATE batch SET fence = 40 WHERE id = 1');
$publisher->wait_for_catchup('fenced');
query_is($subscriber, 'postgres', 'SELECT fence FROM batch WHERE id = 1', 40, 'sealed: what the publisher sends is applied');
mark_is($subscriber, 'postgres', 'batch-1', 40, 'sealed: and raises the mark');
$subscriber->safe_psql('postgres', "SELECT lockfence.reopen(41, 'test')");
accepted_ok($subscriber, 'postgres', 'UPDATE batch SET fence = 41 WHERE id = 5', 'reopened: a local write is accepted');
$publisher->safe_psql('postgres', 'UPDATE batch SET fence = 30 WHERE id = 6');
$publisher->wait_for_catchup('fenced');
query_is($subscriber, 'postgres', 'SELECT fence FROM batch WHERE id = 6', 30, 'reopened: the floor is not for what arrives');

# ---- the subscriber becomes the publisher

$subscriber->safe_psql('postgres', q{
	DROP SUBSCRIPTION fenced;
	CREATE PUBLICATION everything FOR ALL TABLES;
});
refused_ok($subscriber, 'postgres', "INSERT INTO batch VALUES (7, 'stale', 19)", 'LF001', 'promoted: a stale token is refused');
refused_ok($subscriber, 'postgres', "INSERT INTO ticket VALUES (1, 'stale', 19)", 'LF001', 'promoted: on a constant fence, too');
refused_ok($subscriber, 'postgres', 'UPDATE doc SET fence = 29', 'LF001', 'promoted: on a row fence, too');
$connection = 'host=' . $subscriber->host . ' port=' . $subscriber->port . ' dbname=postgres';

# With all tables come those of lockfence: the marks merge, and the record of the timeline does not travel.
my $record = "SELECT value, name FROM lockfence.state WHERE name LIKE 'timeline:%'";
my $own = $publisher->safe_psql('postgres', $record);
$publisher->safe_psql('postgres', 'SET lockfence.bypass = on; TRUNCATE batch, doc, ticket, hidden');
$publisher->safe_psql('postgres', "CREATE SUBSCRIPTION everything CONNECTION '$connection' PUBLICATION everything");
$publisher->wait_for_subscription_sync($subscriber, 'everything');
query_is($publisher, 'postgres', $record, $own, 'all tables: the record of the timeline is its own');
query_is($publisher, 'postgres', "SELECT value FROM lockfence.state WHERE name = 'minimum'", 41, 'all tables: the minimum comes');
$subscriber->safe_psql('postgres', 'UPDATE batch SET fence = 60 WHERE id = 1');
$subscriber->safe_psql('postgres', "SELECT lockfence.reopen(60, 'again')");
$subscriber->wait_for_catchup('everything');
mark_is($publisher, 'postgres', 'batch-1', 60, 'all tables: the mark rises on the former publisher');
query_is($publisher, 'postgres', "SELECT value FROM lockfence.state WHERE name = 'minimum'", 60, 'all tables: and the floor');
query_is($publisher, 'postgres', 'SELECT state FROM lockfence.gate()', 'open', 'all tables: its gate is open');
refused_ok($publisher, 'postgres', 'UPDATE batch SET fence = 59 WHERE id = 1', 'LF001', 'the former publisher refuses the stale');
query_is($publisher, 'postgres', "SELECT lockfence.is_current('batch-1', 59), lockfence.is_current('batch-1', 60)", 'f|t',
	'the former publisher knows the holder');

done_testing();
