# An advance that was acknowledged survives a crash, with synchronous_commit = off too.
#
# The WAL writer is stopped, so that nothing but a synchronous commit gets WAL out of shared memory.  Each
# time, a write under the same token follows the advance: nothing forces that one out, and its loss shows
# that this crash does lose what was committed asynchronously.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('crash', "synchronous_commit = off\n");

$node->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	INSERT INTO batch VALUES (1, 'before');
	INSERT INTO job VALUES (1, 'before');
	INSERT INTO doc VALUES (1, 'before');
	SELECT lockfence.attach('batch', 'batch-{id}');
	SELECT lockfence.attach('job', 'jobs');
	SELECT lockfence.attach('doc');
	CHECKPOINT;
});

# Kills every process of the server at once, so that no process has the time to write anything.
sub kill_server
{
	my $pids = $node->safe_psql('postgres', 'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()');

	$node->kill9;
	kill('KILL', split(/\n/, $pids));
	# its process id may still be there for a while, and look like a running server
	unlink($node->data_dir . '/postmaster.pid', $node->host . '/.s.PGSQL.' . $node->port . '.lock') == 2
	  or die "no lock files: $!";
	return;
}

# crash_after(HOW, SQL...): each SQL is a transaction of its own, acknowledged before the crash.
sub crash_after
{
	my ($how, @transactions) = @_;

	stop_process($node, 'walwriter');
	$node->safe_psql('postgres', $_) foreach @transactions;
	$how eq 'kill' ? kill_server() : $node->stop('immediate');
	$node->start;
	return;
}

# What is left of an advance and of a write under the same token, after a crash.
sub advance_survives
{
	my ($how, $fence, $table, $advance, $write, $stale, $mark) = @_;

	crash_after($how, $advance, $write);
	query_is($node, 'postgres', $mark, 20, "$how: mark of a $fence fence survives");
	refused_ok($node, 'postgres', $stale, 'LF001', "$how: stale token is refused on a $fence fence");
	query_is($node, 'postgres', "SELECT note FROM $table", 'before',
		"$how: write under the same token was lost, as asked for");
	return;
}

advance_survives('immediate', 'named', 'batch',
	"SELECT lockfence.present('batch-1', 20)",
	"BEGIN; SELECT lockfence.present(20); UPDATE batch SET note = 'lost'; COMMIT",
	"BEGIN; SELECT lockfence.present(19); UPDATE batch SET note = 'stale'; COMMIT",
	"SELECT token FROM lockfence.mark WHERE resource = 'batch-1'");

advance_survives('kill', 'named', 'batch',
	"SELECT lockfence.present('batch-2', 20)",
	"BEGIN; SELECT lockfence.present(20); UPDATE batch SET note = 'lost'; COMMIT",
	"BEGIN; SELECT lockfence.present(19); INSERT INTO batch VALUES (2, 'stale'); COMMIT",
	"SELECT token FROM lockfence.mark WHERE resource = 'batch-2'");

advance_survives('kill', 'constant', 'job',
	"BEGIN; SELECT lockfence.present(20); UPDATE job SET note = 'nothing' WHERE false; COMMIT",
	"BEGIN; SELECT lockfence.present(20); UPDATE job SET note = 'lost'; COMMIT",
	'BEGIN; SELECT lockfence.present(19); DELETE FROM job; COMMIT',
	"SELECT token FROM lockfence.mark WHERE resource = 'jobs'");

advance_survives('kill', 'row', 'doc',
	'UPDATE doc SET fence = 20',
	"UPDATE doc SET fence = 20, note = 'lost'",
	'UPDATE doc SET fence = 19',
	'SELECT fence FROM doc');

# What administration fences out stays out.
my $lost = "BEGIN; SELECT lockfence.present(40); UPDATE batch SET note = 'lost'; COMMIT";

crash_after('kill', "SELECT lockfence.raise_mark('batch-1', 40, 'test')", $lost);
mark_is($node, 'postgres', 'batch-1', 40, 'raised mark survives');
query_is($node, 'postgres', "SELECT count(*) FROM lockfence.admin_log WHERE action = 'raise_mark'", 1,
	'so does the record of it');
query_is($node, 'postgres', "SELECT count(*) FROM batch WHERE note = 'lost'", 0, 'the write after it does not');

crash_after('kill', "SELECT lockfence.reset_mark('batch-1', 30, 'test')");
mark_is($node, 'postgres', 'batch-1', 30, 'mark that was reset survives');

crash_after('kill', "SELECT lockfence.prune('0')");
query_is($node, 'postgres', "SELECT value FROM lockfence.state WHERE name = 'floor'", 30, 'floor survives');
query_is($node, 'postgres', 'SELECT count(*) FROM lockfence.mark', 0, 'with the marks gone that it covers');

crash_after('kill', "SELECT lockfence.set_epoch(2, 'test')");
query_is($node, 'postgres', "SELECT value FROM lockfence.state WHERE name = 'epoch'", 2, 'epoch survives');
refused_ok($node, 'postgres', "SELECT lockfence.present('batch-1', 50)", 'LF001',
	'token of the ended epoch is refused');

crash_after('kill', "SELECT lockfence.reset_floor(45, 'test')");
query_is($node, 'postgres', "SELECT value FROM lockfence.state WHERE name = 'floor'", 45, 'floor that was set survives');

done_testing();
