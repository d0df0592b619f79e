# A fenced table that arrives without its marks: what was fenced is on record beside them, and what is not on
# record is sealed until reconcile().  The ways of a dump that bring the record, and those that do not; a
# subscriber, and its takeover; partitions that come and go.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('record', "shared_preload_libraries = 'lockfence'\n", allows_streaming => 'logical');
my $dir = PostgreSQL::Test::Utils::tempdir;
my $version = $node->safe_psql('postgres', "SELECT current_setting('server_version_num')::int / 10000");

my $SCHEMA = q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	CREATE TABLE part (k int, note text) PARTITION BY LIST (k);
	CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence'), lockfence.attach('job', 'jobs/nightly'),
		lockfence.attach('doc'), lockfence.attach('part', 'part-{k}', 'fence');
};
my $ROWS = q{
	INSERT INTO batch VALUES (1, 'x', 20);
	INSERT INTO doc VALUES (1, 'x', 20);
	INSERT INTO part VALUES (1, 'x', 20);
	BEGIN; SELECT lockfence.present('jobs/nightly', 20); INSERT INTO job VALUES (1, 'x'); COMMIT;
	SELECT lockfence.present('batch-1', 30);
};
# Its mark is above what the rows tell, or there is no row to tell it.
my %write = (
	batch => 'UPDATE batch SET fence = %d',
	job => 'BEGIN; SELECT lockfence.present(%d); DELETE FROM job; ROLLBACK',
	part => 'UPDATE part SET fence = %d',
	part_1 => 'UPDATE part_1 SET fence = %d',
	doc => 'UPDATE doc SET fence = %d');
my $RECORD = 'SELECT target::text FROM lockfence.fenced ORDER BY 1';

sub new_database
{
	my ($db, $sql) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0");
	$node->safe_psql($db, $sql) if defined $sql;
	return;
}

sub write_refused
{
	my ($db, $table, $token, $code, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	refused_ok($node, $db, sprintf($write{$table}, $token), $code, "$name: $table");
	return;
}

sub write_accepted
{
	my ($db, $table, $token, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	accepted_ok($node, $db, sprintf($write{$table}, $token), "$name: $table");
	return;
}

# Everything is refused by its mark, as in the source.
sub as_before
{
	my ($db, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, $db, $RECORD, join("\n", sort keys %write), "$name: all is on record");
	write_refused($db, 'batch', 29, 'LF001', $name);
	write_refused($db, $_, 19, 'LF001', $name) foreach ('job', 'doc', 'part', 'part_1');
	query_is($node, $db, "SELECT target, code FROM lockfence.verify() WHERE severity = 'error'", '', "$name: verify() finds nothing");
	write_accepted($db, $_, 30, $name) foreach (sort keys %write);
	return;
}

# Fences without marks: nothing passes but by a row's own.
sub all_sealed
{
	my ($db, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, $db, $RECORD, '', "$name: nothing is on record");
	foreach my $table ('batch', 'job', 'part', 'part_1')
	{
		write_refused($db, $table, $_, 'LF005', $name) foreach (19, 40);
	}
	write_refused($db, 'doc', 19, 'LF001', $name);
	query_is($node, $db, "SELECT target, code FROM lockfence.verify() WHERE severity = 'error' ORDER BY target::text",
		"batch|not_on_record\njob|not_on_record\npart|not_on_record", "$name: verify() finds them");
	return;
}

sub dump_to
{
	my ($file, @options) = @_;

	$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/$file", @options, '-d', 'src' ], "pg_dump @options");
	return;
}

sub restore_ok
{
	my ($db, $file, $name, @options) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->command_ok([ 'pg_restore', '-e', @options, '-d', $db, "$dir/$file" ], "$name: restores");
	return;
}

new_database('src', "CREATE EXTENSION lockfence; $SCHEMA $ROWS");
as_before('src', 'source');

# ---- dumps that bring the record

dump_to('whole');
new_database('whole');
restore_ok('whole', 'whole', 'whole');
as_before('whole', 'whole');
restore_ok('whole', 'whole', 'over itself', '--clean', '--if-exists');
as_before('whole', 'over itself, --clean');
new_database('jobs');
restore_ok('jobs', 'whole', 'in parallel', '-j2');
as_before('jobs', 'in parallel');
$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE src');
as_before('copied', 'copied as template');

# The tables have other numbers here, and have been renamed there.
$node->safe_psql('src', 'ALTER TABLE batch RENAME TO parcel; ALTER TABLE parcel RENAME TO batch');

# One table is left out: its record is too, and all others come.
dump_to('without', '-T', 'batch');
new_database('without');
restore_ok('without', 'without', '-T');
query_is($node, 'without', $RECORD, "doc\njob\npart\npart_1", '-T: the others are on record');
write_refused('without', $_, 19, 'LF001', '-T') foreach ('job', 'part');

# Its data is left out, and its marks are not.
dump_to('no_rows', '--exclude-table-data', 'batch');
new_database('no_rows');
restore_ok('no_rows', 'no_rows', '--exclude-table-data');
refused_ok($node, 'no_rows', "INSERT INTO batch VALUES (1, 'x', 29)", 'LF001', '--exclude-table-data: the marks are there');

SKIP:
{
	skip 'pg_dump has no -e before PostgreSQL 14', 6 if $version < 14;

	dump_to('one', '-t', 'batch', '-e', 'lockfence');
	new_database('one', 'CREATE EXTENSION lockfence');
	restore_ok('one', 'one', '-t -e');
	query_is($node, 'one', $RECORD, 'batch', '-t -e: the table is on record, and no other');
	mark_is($node, 'one', 'jobs/nightly', 20, '-t -e: with all the marks');
	write_refused('one', 'batch', 29, 'LF001', '-t -e');
	write_accepted('one', 'batch', 30, '-t -e');
}

# ---- the data alone, into what is fenced already

dump_to('data', '-a');
new_database('live', "CREATE EXTENSION lockfence; $SCHEMA");
$ENV{PGOPTIONS} = '-c lockfence.bypass=on';
restore_ok('live', 'data', '-a into fences');
delete $ENV{PGOPTIONS};
as_before('live', '-a into fences');

# ---- the schema alone

dump_to('schema', '-s');
new_database('schema_only');
restore_ok('schema_only', 'schema', '-s');
$node->safe_psql('postgres', 'CREATE DATABASE with_data TEMPLATE schema_only');
query_is($node, 'schema_only', $RECORD, '', '-s: nothing is on record');
refused_ok($node, 'schema_only', "INSERT INTO batch VALUES (1, 'x', $_)", 'LF005', "-s: sealed: $_") foreach (1, 40);
query_is($node, 'schema_only', "SELECT sealed FROM lockfence.stats WHERE target = 'batch'::regclass", 2, '-s: and counted');
query_is($node, 'schema_only', 'SELECT code, resource FROM lockfence.refusals WHERE database = current_database() LIMIT 1',
	'LF005|batch-1', '-s: and kept');
refused_ok($node, 'schema_only', 'CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2); INSERT INTO part VALUES (2)',
	'LF005', '-s: new partitions follow their parent');
query_is($node, 'schema_only', 'SELECT count(lockfence.reconcile(target)) FROM lockfence.fences WHERE NOT on_record', 6,
	'-s: reconcile() all of them');
accepted_ok($node, 'schema_only', "INSERT INTO batch VALUES (1, 'x', 1); INSERT INTO part VALUES (1, 'x', 1), (2, 'x', 1)",
	'-s: and a new life begins');
query_is($node, 'schema_only', "SELECT count(*) >= 4 FROM lockfence.admin_log WHERE action = 'reconcile'", 't',
	'-s: each that had something to do is logged');

# ... and the data after it brings the record
$ENV{PGOPTIONS} = '-c lockfence.bypass=on';
restore_ok('with_data', 'data', '-s, -a');
delete $ENV{PGOPTIONS};
as_before('with_data', '-s, -a');

# ---- tables alone

dump_to('tables', map { ('-t', $_) } sort keys %write);
new_database('tables', 'CREATE EXTENSION lockfence');
restore_ok('tables', 'tables', '-t');
all_sealed('tables', '-t');
$node->safe_psql('tables', "SELECT lockfence.reconcile('batch'), lockfence.reconcile('part'), lockfence.reconcile('doc')");
write_refused('tables', $_, 19, 'LF001', '-t, reconciled') foreach ('batch', 'part', 'part_1');
write_refused('tables', 'job', 40, 'LF005', '-t, not reconciled');
# The marks of a fence without a token column are copied before it is vouched for.
$node->safe_psql('tables', "INSERT INTO lockfence.mark VALUES (20, now(), 'jobs/nightly'); SELECT lockfence.reconcile('job')");
write_refused('tables', 'job', 19, 'LF001', '-t, marks copied');
write_accepted('tables', 'job', 20, '-t, marks copied');

# A shard that moves: it was written there, and is attached here.
dump_to('shard', '-t', 'part_1');
new_database('shards', q{
	CREATE EXTENSION lockfence;
	CREATE TABLE part (k int, note text, fence bigint) PARTITION BY LIST (k);
	SELECT lockfence.attach('part', 'part-{k}', 'fence');
});
system_or_bail('pg_restore', '-t', 'part_1', '-f', "$dir/shard.sql", "$dir/shard");
my $shard = slurp_file("$dir/shard.sql");
# pg_dump of 13 attaches a partition in the same breath
$shard =~ s/^ALTER TABLE ONLY public\.part ATTACH PARTITION .*\n//m;
$node->safe_psql('shards', $shard);
$node->safe_psql('shards', q{
	ALTER TABLE part_1 ALTER fence TYPE bigint;
	ALTER TABLE part ATTACH PARTITION part_1 FOR VALUES IN (1)});
write_refused('shards', 'part', $_, 'LF005', 'shard') foreach (19, 40);
query_is($node, 'shards', "SELECT lockfence.reconcile('part')", 1, 'shard: reconcile() the parent');
write_refused('shards', 'part', 19, 'LF001', 'shard, reconciled');
write_accepted('shards', 'part', 30, 'shard, reconciled');

# ---- partitions that are detached concurrently

SKIP:
{
	skip 'DETACH CONCURRENTLY came with PostgreSQL 14', 3 if $version < 14;

	$node->safe_psql('shards', 'ALTER TABLE part DETACH PARTITION part_1 CONCURRENTLY');
	query_is($node, 'shards', $RECORD, 'part', 'DETACH CONCURRENTLY: off the record');
	$node->safe_psql('shards', 'UPDATE part_1 SET fence = 50; ALTER TABLE part ATTACH PARTITION part_1 FOR VALUES IN (1)');
	write_refused('shards', 'part', 40, 'LF005', 'attached again');
	$node->safe_psql('shards', "SELECT lockfence.reconcile('part_1')");
	write_refused('shards', 'part', 40, 'LF001', 'attached again, reconciled');
}

# ---- where the event triggers do not fire, new partitions are sealed

$node->safe_psql('shards', q{
	ALTER EVENT TRIGGER lockfence_partitions DISABLE;
	CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);
	ALTER EVENT TRIGGER lockfence_partitions ENABLE ALWAYS});
refused_ok($node, 'shards', "INSERT INTO part VALUES (2, 'x', 10)", 'LF005', 'without the event trigger: sealed');

# ---- the tables after a crash

$node->stop('immediate');
$node->start;
as_before('src', 'after a crash');

# ---- a subscriber, whose schema came by pg_dump -s

my $subscriber = fenced_node('subscriber', '', allows_streaming => 'logical');
my $connection = 'host=' . $node->host . ' port=' . $node->port . ' dbname=src';
$subscriber->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE template0');
$subscriber->command_ok([ 'pg_restore', '-e', '-d', 'copy', "$dir/schema" ], 'subscriber: restores the schema');
$node->safe_psql('src', 'CREATE PUBLICATION fenced FOR TABLE batch, job, doc, part, lockfence.mark, lockfence.state');
$subscriber->safe_psql('copy', "CREATE SUBSCRIPTION fenced CONNECTION '$connection' PUBLICATION fenced");
$subscriber->wait_for_subscription_sync($node, 'fenced', 'copy');
$node->safe_psql('src', "UPDATE batch SET fence = 35; BEGIN; SELECT lockfence.present(35); UPDATE job SET note = 'y'; COMMIT");
$node->wait_for_catchup('fenced');
query_is($subscriber, 'copy', 'SELECT b.fence, j.note FROM batch b, job j', '35|y', 'subscriber: sealed fences let the apply worker pass');
refused_ok($subscriber, 'copy', 'UPDATE batch SET fence = 40', 'LF005', 'subscriber: and no other session');
$subscriber->safe_psql('copy', 'DROP SUBSCRIPTION fenced');
refused_ok($subscriber, 'copy', 'UPDATE batch SET fence = 40', 'LF005', 'takeover: not before reconcile()');
$subscriber->safe_psql('copy', 'SELECT lockfence.reconcile(target) FROM lockfence.fences WHERE NOT on_record');
refused_ok($subscriber, 'copy', 'UPDATE batch SET fence = 34', 'LF001', 'takeover: stale tokens are refused');
refused_ok($subscriber, 'copy', sprintf($write{job}, 34), 'LF001', 'takeover: on a fence without a token column too');
accepted_ok($subscriber, 'copy', 'UPDATE batch SET fence = 40', 'takeover: new ones are accepted');

# FOR ALL TABLES publishes the record with the rest, by name.
$subscriber->safe_psql('postgres', 'CREATE DATABASE everything TEMPLATE template0');
$subscriber->command_ok([ 'pg_restore', '-e', '-d', 'everything', "$dir/schema" ], 'all tables: restores the schema');
$subscriber->safe_psql('everything', 'DROP TABLE doc');
$subscriber->safe_psql('everything', 'CREATE TABLE doc (id int PRIMARY KEY, note text, fence bigint)');
$node->safe_psql('src', 'CREATE PUBLICATION everything FOR ALL TABLES');
my $binary = $version < 14 ? '' : 'WITH (binary = true)';
$subscriber->safe_psql('everything', "CREATE SUBSCRIPTION everything CONNECTION '$connection' PUBLICATION everything $binary");
$subscriber->wait_for_subscription_sync($node, 'everything', 'everything');
$node->safe_psql('src', q{
	CREATE TABLE late (id int PRIMARY KEY);
	SELECT lockfence.attach('late', 'late', 'fence'), lockfence.detach('job')});
$node->wait_for_catchup('everything');
query_is($subscriber, 'everything', $RECORD, "batch\ndoc\npart\npart_1",
	'all tables: the record comes and goes with them, but for what is not there');

done_testing();
