# attach() and detach() among writers: attach() waits for those that write, and a session that writes after it is
# fenced, however early its transaction or plan began.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('attach');

$node->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	CREATE TABLE part (k int, id int, note text) PARTITION BY LIST (k);
	CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
	CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);
	INSERT INTO batch SELECT g, 'x' FROM generate_series(1, 10) g;
	INSERT INTO job SELECT g, 'x' FROM generate_series(1, 10) g;
	INSERT INTO part SELECT g % 2 + 1, g, 'x' FROM generate_series(1, 10) g;
});

my ($dba, $writer, $late, $old, $reader) = map { session($node, 'postgres') } 1 .. 5;

# attach_among(TABLE, ATTACH, WRITE, FENCED WRITE): among a writer in its transaction, one that comes while
# attach() waits, and one whose snapshot and plan are older than the fence.
sub attach_among
{
	my ($what, $attach, $write, $fenced) = @_;

	ask($old, 'DEALLOCATE ALL; PREPARE w AS ' . $write->(3));
	ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	ask($reader, 'DEALLOCATE ALL; PREPARE w AS ' . $write->(4) . '; EXECUTE w');
	ask($writer, 'BEGIN');
	is(ask($writer, $write->(1)), '', "$what: a writer is in its transaction");

	start_blocked($dba, $attach);
	start_blocked($late, $write->(2));
	pass("$what: attach() waits for it, and the next writer for attach()");
	is(ask($writer, $write->(1)), '', "$what: the writer goes on");
	is(ask($writer, 'COMMIT'), '', "$what: and commits");
	unlike(finish_blocked($dba), qr/ERROR/, "$what: then attach() attaches");

	like(finish_blocked($late), qr/LF002/, "$what: who waited for it is fenced");
	like(ask($writer, $write->(1)), qr/LF002/, "$what: so is who wrote before");
	like(ask($reader, 'EXECUTE w'), qr/LF002/, "$what: so is a statement planned before");
	like(ask($old, 'EXECUTE w'), qr/LF002/, "$what: so is a transaction that began before");
	ask($old, 'ROLLBACK');
	ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	is(ask($old, $fenced), '', "$what: a token is accepted");
	ask($old, 'COMMIT');
	return;
}

attach_among('named fence', "SELECT lockfence.attach('batch', 'batch-{id}')",
	sub { "UPDATE batch SET note = note || 'y' WHERE id = " . shift },
	"DO \$\$ BEGIN PERFORM lockfence.present(10); UPDATE batch SET note = 'z'; END \$\$");
attach_among('constant fence', "SELECT lockfence.attach('job', 'jobs')",
	sub { "UPDATE job SET note = note || 'y' WHERE id = " . shift },
	"DO \$\$ BEGIN PERFORM lockfence.present(10); UPDATE job SET note = 'z'; END \$\$");
attach_among('partitioned table', "SELECT lockfence.attach('part', 'part-{k}', 'fence')",
	sub {
		my ($id) = @_;
		# who waits writes to the parent: to a partition first would be a deadlock with any ALTER TABLE
		return "UPDATE part SET note = note || 'y' WHERE id = 2" if $id == 2;
		return 'UPDATE part_' . ($id % 2 + 1) . " SET note = note || 'y' WHERE id = $id";
	},
	'UPDATE part SET fence = 10');
refused_ok($node, 'postgres', 'UPDATE part_1 SET fence = 9', 'LF001', 'partitioned table: and a stale one is not');

# ---- readers

$node->safe_psql('postgres', q{
	SELECT lockfence.detach('job');
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	INSERT INTO doc VALUES (1, 'x');
});
ask($reader, 'BEGIN');
ask($reader, 'SELECT count(*) FROM job, doc');
is(ask($dba, "SET lock_timeout = '10s'; SELECT lockfence.attach('job', 'jobs')"), '',
	'a fence without a token column waits for no reader');
start_blocked($dba, "SET lock_timeout = 0; SELECT lockfence.attach('doc')");
is(ask($reader, 'SELECT note FROM doc'), 'x', 'one that adds its token column does');
ask($reader, 'COMMIT');
unlike(finish_blocked($dba), qr/ERROR/, 'until they are gone');
like(ask($writer, "UPDATE doc SET note = 'y'; DELETE FROM doc WHERE id = 1"), qr/LF002/, 'then it is fenced');

# ---- what changes while attach() waits

$node->safe_psql('postgres', 'CREATE TABLE ruled (id int)');
ask($writer, 'BEGIN');
ask($writer, 'CREATE RULE elsewhere AS ON INSERT TO ruled DO INSTEAD NOTHING');
start_blocked($dba, "SELECT lockfence.attach('ruled', 'ruled')");
ask($writer, 'COMMIT');
like(finish_blocked($dba), qr/ERROR:  LF009/, 'a rule that came while attach() waited is seen');

$node->safe_psql('postgres', 'CREATE TABLE twice (id int)');
ask($writer, 'BEGIN');
ask($writer, "SELECT lockfence.attach('twice', 'twice')");
start_blocked($dba, "SELECT lockfence.attach('twice', 'other')");
ask($writer, 'COMMIT');
like(finish_blocked($dba), qr/ERROR:  42710/, 'so is a fence');
query_is($node, 'postgres', "SELECT resource FROM lockfence.fences WHERE target = 'twice'::regclass", 'twice',
	'and the table has the first one');

$node->safe_psql('postgres', 'CREATE TABLE grown (k int) PARTITION BY LIST (k)');
ask($writer, 'BEGIN');
ask($writer, 'CREATE TABLE grown_1 PARTITION OF grown FOR VALUES IN (1)');
start_blocked($dba, "SELECT lockfence.attach('grown', 'grown-{k}')");
ask($writer, 'COMMIT');
unlike(finish_blocked($dba), qr/ERROR/, 'a partition that came while attach() waited');
refused_ok($node, 'postgres', 'INSERT INTO grown_1 VALUES (1)', 'LF002', 'is fenced');
refused_ok($node, 'postgres', 'TRUNCATE grown_1', 'LF009', 'also against TRUNCATE');

# ---- an attach that is rolled back, and detach()

$node->safe_psql('postgres', 'CREATE TABLE undone (id int)');
ask($dba, 'BEGIN');
ask($dba, "SELECT lockfence.attach('undone', 'undone')");
start_blocked($late, 'INSERT INTO undone VALUES (1)');
ask($dba, 'ROLLBACK');
is(finish_blocked($late), '', 'a fence that was rolled back refuses no write');

ask($writer, 'BEGIN');
ask($writer, 'SELECT lockfence.present(10)');
ask($writer, "UPDATE job SET note = 'z'");
start_blocked($dba, "SELECT lockfence.detach('job')");
like(ask($reader, q{SELECT triggers->>'~lockfence_statement' FROM lockfence.fences WHERE target = 'job'::regclass}),
	qr/always/, 'detach() waits for writers, and the fence stands until then');
ask($writer, 'COMMIT');
unlike(finish_blocked($dba), qr/ERROR/, 'then it is gone');
is(ask($late, "UPDATE job SET note = 'free'"), '', 'for everybody');
mark_is($node, 'postgres', 'jobs', 10, 'its mark stays');

$_->{psql}->quit foreach ($dba, $writer, $late, $old, $reader);
done_testing();
