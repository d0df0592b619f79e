# PREPARE TRANSACTION keeps what the transaction holds, across a restart too, until it is committed or
# rolled back; the session that prepared it has nothing of it left.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('prepared');

$node->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}');
	SELECT lockfence.present(10);
	BEGIN;
	SELECT lockfence.present(10);
	INSERT INTO batch VALUES (1), (2), (3), (4);
	COMMIT;
});

my $IMPATIENT = "SET lock_timeout = '100ms';";
my $HOLDS = 'SELECT DISTINCT gid FROM lockfence.prepared_holds ORDER BY 1';

# One that holds at the mark, one that holds by a lock on the mark's tuple, and three that advance, one of
# them from no mark at all.
$node->safe_psql('postgres', q{
	BEGIN;
	SELECT lockfence.present(10);
	UPDATE batch SET note = 'held' WHERE id = 1;
	PREPARE TRANSACTION 'equal';
});
$node->safe_psql('postgres', q{
	SET lockfence.max_resource_locks = 0;
	BEGIN;
	SELECT lockfence.present(10);
	UPDATE batch SET note = 'held' WHERE id = 2;
	PREPARE TRANSACTION 'by tuple';
});
$node->safe_psql('postgres', q{
	BEGIN;
	SELECT lockfence.present('batch-3', 20);
	PREPARE TRANSACTION 'advance';
	BEGIN;
	SELECT lockfence.present('batch-4', 20);
	PREPARE TRANSACTION 'undone';
	BEGIN;
	SELECT lockfence.present('batch-5', 20);
	PREPARE TRANSACTION 'first';
});

# The memo ends at prepare.
my $s = session($node, 'postgres');
ask($s, 'BEGIN');
ask($s, "SELECT lockfence.present('batch-9', 90)");
ask($s, 'SELECT lockfence.present(10)');
ask($s, 'SET LOCAL lockfence.unchecked_token = ignore');
is(ask($s, "PREPARE TRANSACTION 'memo'"), '', 'a transaction that presented prepares');
is(ask($s, 'SELECT count(*) FROM lockfence.presented()'), 0, 'session has nothing presented after prepare');
like(ask($s, "UPDATE batch SET note = 'inherited' WHERE id = 3"), qr/LF002/, 'and its next write presents nothing');
is(ask($s, "ROLLBACK PREPARED 'memo'"), '', 'the same session ends it');
is(ask($s, "SELECT coalesce(lockfence.present('batch-9', 5), 0)"), 0, 'its advance never was');
$s->{psql}->quit;

sub everything_is_held
{
	my ($when) = @_;
	my %held = (
		'batch-1' => 'equal', 'batch-2' => 'by tuple',
		'batch-3' => 'advance', 'batch-4' => 'undone', 'batch-5' => 'first');

	query_is($node, 'postgres', $HOLDS, "advance\nby tuple\nequal\nfirst\nundone", "$when: all of them are shown");
	foreach my $resource (sort keys %held)
	{
		my $gid = $held{$resource};

		refused_ok($node, 'postgres', "$IMPATIENT SELECT lockfence.present('$resource', 30)", '55P03',
			"$when: no session advances past \"$gid\"", qr/HINT:  Prepared transaction "$gid" holds the resource/);
		refused_ok($node, 'postgres', "$IMPATIENT SELECT lockfence.raise_mark('$resource', 30, 'test')", '55P03',
			"$when: not by force either");
		my (undef, $err) = try_sql($node, 'postgres',
			"SET lockfence.preempt = on; $IMPATIENT SELECT lockfence.present('$resource', 30)");
		like($err, qr/WARNING: .*waiting for prepared transaction "$gid"/, "$when: preemption warns of \"$gid\"");
		like($err, qr/ERROR:  55P03/, "$when: and cannot end it");
	}
	refused_ok($node, 'postgres', "$IMPATIENT SELECT lockfence.present('batch-3', 15)", '55P03',
		"$when: a token between mark and advance waits as well");
	accepted_ok($node, 'postgres', "$IMPATIENT SELECT lockfence.present('batch-1', 10)",
		"$when: a sibling at the mark does not wait");
	refused_ok($node, 'postgres', "$IMPATIENT SELECT lockfence.present('batch-1', 9)", 'LF001',
		"$when: a stale token is refused at once");
	query_is($node, 'postgres', "SELECT count(*) FROM pg_prepared_xacts", 5, "$when: all are still prepared");
	return;
}

everything_is_held('prepared');
$node->stop('immediate');
$node->start;
everything_is_held('after a crash');
$node->restart;
everything_is_held('after a restart');

# Ended, each lets go, and a waiting one is decided on what it left.
sub wait_and_end
{
	my ($present, $end) = @_;
	my $waiting = session($node, 'postgres');

	start_blocked($waiting, $present);
	$node->safe_psql('postgres', $end);
	my $result = finish_blocked($waiting);
	$waiting->{psql}->quit;
	return $result;
}

is(wait_and_end("SELECT lockfence.present('batch-1', 30)", "COMMIT PREPARED 'equal'"), 10,
	'COMMIT PREPARED of a holder lets the advance through');
is(wait_and_end("SELECT lockfence.present('batch-2', 30)", "ROLLBACK PREPARED 'by tuple'"), 10,
	'so does ROLLBACK PREPARED');
like(wait_and_end("SELECT lockfence.present('batch-3', 15)", "COMMIT PREPARED 'advance'"), qr/LF001/,
	'after COMMIT PREPARED of an advance, a lower token is stale');
is(wait_and_end("SELECT lockfence.present('batch-4', 15)", "ROLLBACK PREPARED 'undone'"), 10,
	'after ROLLBACK PREPARED of an advance, it is not');
like(wait_and_end("SELECT lockfence.present('batch-5', 15)", "COMMIT PREPARED 'first'"), qr/LF001/,
	'and the same where it made the mark');
query_is($node, 'postgres', $HOLDS, '', 'no prepared transaction holds anything');
query_is($node, 'postgres', 'SELECT resource, token FROM lockfence.mark ORDER BY 1',
	"batch-1|30\nbatch-2|30\nbatch-3|20\nbatch-4|15\nbatch-5|20\nbatch-9|5", 'marks are what was committed');
query_is($node, 'postgres', "SELECT id FROM batch WHERE note = 'held'", 1, 'and so are the rows');

# A token that was compared with no mark is told of by PREPARE, since COMMIT PREPARED knows of no token.
my $unchecked = "SET lockfence.unchecked_token = error; BEGIN; SELECT lockfence.present(5); CREATE TABLE unfenced (); PREPARE TRANSACTION 'unchecked'";
refused_ok($node, 'postgres', $unchecked, 'LF010', 'PREPARE TRANSACTION refuses a token that was compared with no mark');
query_is($node, 'postgres', "SELECT count(*) FROM pg_prepared_xacts", 0, '... and nothing is prepared');

done_testing();
