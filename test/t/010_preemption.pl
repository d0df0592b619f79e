# Preemption (lockfence.preempt = on): what it does to a holder, and whom it spares.
#
# What two sessions can show by waiting for locks is in the isolation specs.  Here are holders that sleep,
# that survive a cancel, that the role may not end, one that is stopped so that an advance stays on its way
# while the mark goes up, and one behind a crowd.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('preemption', "log_line_prefix = '%p '\n");
my $watch = session($node, 'postgres');

# What the server has logged of a process that an advance ended.
sub ended_in_log
{
	my ($pid) = @_;
	my $log = slurp_file($node->logfile);

	return map { s/ing$//r } $log =~ /LOG: .*\b(cancel(?:ing)|terminat(?:ing)) process $pid, which holds resource/g;
}

# Waits until a session waits for this event.
sub wait_for_event
{
	my ($session, $event) = @_;

	$node->poll_query_until('postgres',
		"SELECT wait_event = '$event' FROM pg_stat_activity WHERE pid = $session->{pid}")
	  or die "session does not come to wait for $event";
	return;
}

sub wait_until_gone
{
	my ($pid) = @_;

	$node->poll_query_until('postgres',
		"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)")
	  or die "process $pid does not go away";
	return;
}

# Starts a statement and does not wait for it.
sub start
{
	my ($session, $sql) = @_;

	$session->{psql}->{stderr} = '';
	$session->{psql}->query_until(qr/^started$/m, "\\echo started\n$sql;\n");
	return;
}

# Makes the session's transaction a holder by a lock: the mark itself is committed.
sub hold
{
	my ($session, $resource, $token) = @_;

	ask($session, "SELECT lockfence.present('$resource', $token)");
	ask($session, "BEGIN; SELECT lockfence.present('$resource', $token)");
	return;
}

sub is_alive
{
	my ($pid) = @_;

	return ask($watch, "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") eq '1';
}

# ---- a holder that runs is canceled, and told so

my $holder = session($node, 'postgres');
hold($holder, 'sleeps', 10);
start($holder, 'SELECT pg_sleep(600)');
wait_for_event($holder, 'PgSleep');
accepted_ok($node, 'postgres', q{SET lockfence.preempt = on; SELECT lockfence.present('sleeps', 11)},
	'an advance gets past a holder that runs');
like(finish_blocked($holder), qr/ERROR:  57014: canceling statement due to user request/, 'which is canceled');
is_deeply([ ended_in_log($holder->{pid}) ], ['cancel'], 'and logged');
like(slurp_file($node->logfile), qr/DETAIL:  lockfence.preempt is on; token 11 \(epoch 0, revision 11\) is advancing the mark/,
	'with the reason and the token');
like(ask($holder, 'ROLLBACK; SELECT 1'), qr/^1$/, 'its session goes on');

# ---- one whose transaction survives the cancel is terminated

hold($holder, 'survives', 10);
ask($holder, 'SAVEPOINT s');
start($holder, 'SELECT pg_sleep(600)');
wait_for_event($holder, 'PgSleep');
accepted_ok($node, 'postgres', q{SET lockfence.preempt = on; SELECT lockfence.present('survives', 11)},
	'an advance gets past a holder in a savepoint');
wait_until_gone($holder->{pid});
is_deeply([ ended_in_log($holder->{pid}) ], [ 'cancel', 'cancel', 'terminat' ], 'which is canceled, then terminated');

# ---- one that does not report what it does is canceled first, too, whether it runs or is idle

sub first_end_of_untracked
{
	my ($resource, $prepare, $locks) = @_;
	my $untracked = session($node, 'postgres');

	ask($untracked, 'SET track_activities = off; SET lockfence.max_resource_locks = ' . ($locks // 64));
	hold($untracked, $resource, 10);
	$prepare->($untracked);
	accepted_ok($node, 'postgres', "SET statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'; SET lockfence.preempt = on; SELECT lockfence.present('$resource', 11)",
		"an advance gets past a holder with track_activities = off, $resource");
	return (ended_in_log($untracked->{pid}))[0];
}

ask($watch, 'SELECT pg_advisory_lock(1)');
is(first_end_of_untracked('running', sub { start_blocked($_[0], 'SELECT pg_advisory_xact_lock(1)') }),
	'cancel', 'which is canceled first');
is(first_end_of_untracked('idle', sub { }), 'cancel', 'so is an idle one');
is(first_end_of_untracked('by tuple', sub { }, 0), 'cancel', 'and one that holds the mark by a lock on its tuple');
ask($watch, 'SELECT pg_advisory_unlock(1)');

# ---- one that does not end is waited for

$holder = session($node, 'postgres');
hold($holder, 'stopped', 10);
kill('STOP', $holder->{pid});
refused_ok($node, 'postgres', q{SET lockfence.preempt = on; SET lock_timeout = '10ms'; SELECT lockfence.present('stopped', 11)}, '55P03',
	'an advance does not get past a holder that does not end');
kill('CONT', $holder->{pid});
wait_until_gone($holder->{pid});

# ---- without the setting no transaction is ended

$holder = session($node, 'postgres');
my $next = session($node, 'postgres');
hold($holder, 'off', 10);
start_blocked($next, q{SELECT lockfence.present('off', 11)});
is(ask($holder, 'COMMIT; SELECT 1'), '1', 'with the setting off a holder is waited for');
is(finish_blocked($next), '10', 'and its end lets the advance go on');

# ---- no transaction is ended that the role may not end

$node->safe_psql('postgres', q{
	CREATE ROLE other_holder LOGIN;
	CREATE ROLE weak LOGIN;
	GRANT EXECUTE ON FUNCTION lockfence.present(text, lockfence.fence_token) TO other_holder, weak;
});
ask($holder, 'SET SESSION AUTHORIZATION other_holder');
hold($holder, 'denied', 10);
ask($next, 'SET lockfence.preempt = on; SET ROLE weak');
start_blocked($next, q{SELECT lockfence.present('denied', 11)});
is(ask($holder, 'COMMIT; RESET SESSION AUTHORIZATION; SELECT 1'), '1', 'a holder of another role is waited for');
like(finish_blocked($next), qr/WARNING:  42501: cannot end process $holder->{pid}, which holds resource "denied"/,
	'with a warning');
ask($next, 'RESET ROLE');

# ---- an advance that finds other holders than those that it came to end

# The state of a process: R, S, T (stopped) ...
sub process_state
{
	my ($pid) = @_;

	return slurp_file("/proc/$pid/stat") =~ /\) (\w)/ ? $1 : '';
}

# Stops the session where it sleeps between two attempts at the lock, before it ends holders again.
sub stop_in_grace
{
	my ($session, $held_by) = @_;

	for (1 .. 200)
	{
		my $event = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $session->{pid}";

		if (ask($watch, $event) eq 'Extension')
		{
			kill('STOP', $session->{pid});
			1 until process_state($session->{pid}) =~ /T/;
			return 1 if ask($watch, $event) eq 'Extension' && scalar(ended_in_log($held_by)) == 1;
			kill('CONT', $session->{pid});
		}
		return 0 if scalar(ended_in_log($held_by)) > 1;
	}
	return 0;
}

# The holder of 10 is stopped in its tracks, so that an advance to 12 has to try on and on, and then that
# one is stopped too.  Returns both; the machine may be too slow to catch it, so the caller tries again.
sub catch_advance
{
	my ($resource) = @_;
	my $paused = session($node, 'postgres');
	my $advance = session($node, 'postgres');

	hold($paused, $resource, 10);
	ask($advance, 'SET lockfence.preempt = on');
	kill('STOP', $paused->{pid});
	start($advance, "SELECT lockfence.present('$resource', 12)");
	my $caught = stop_in_grace($advance, $paused->{pid});

	kill('CONT', $paused->{pid});
	wait_until_gone($paused->{pid});
	return $advance if $caught;
	finish_blocked($advance);
	return;
}

# Meanwhile another session takes the resource over by this token and holds it.
sub mark_goes_up
{
	my ($what, $token, $expected) = @_;
	my ($advance, $resource);

	for (my $try = 1; !$advance && $try <= 20; $try++)
	{
		$resource = "overtaken $what $try";
		$advance = catch_advance($resource);
	}
	die 'could not stop an advance on its way' unless $advance;

	my $current = session($node, 'postgres');
	hold($current, $resource, $token);
	kill('CONT', $advance->{pid});
	like(finish_blocked($advance), $expected, "$what: the advance is decided on the newest mark");
	ok(is_alive($current->{pid}), "$what: the holder is not ended");
	is_deeply([ ended_in_log($current->{pid}) ], [], "$what: nor was it tried");
	is(ask($current, 'COMMIT; SELECT 1'), '1', "$what: and goes on") if is_alive($current->{pid});
	return;
}

mark_goes_up('sibling', 12, qr/^12$/);
mark_goes_up('newer holder', 13, qr/ERROR:  LF001: stale fencing token/);

# ---- an advance asks whether the holder waits for it, also where the holder waits behind many

$node->safe_psql('postgres', 'CREATE TABLE hot AS SELECT 0 AS n');
my @crowd = map { session($node, 'postgres') } 1 .. 40;

$holder = session($node, 'postgres');
hold($holder, 'crowd', 10);
ask($watch, 'BEGIN; UPDATE hot SET n = 1');
start_blocked($_, 'UPDATE hot SET n = 2') foreach @crowd, $holder;
refused_ok($node, 'postgres', q{SET lock_timeout = '10ms'; SELECT lockfence.present('crowd', 11)}, '55P03',
	'a crowd of waiters is looked through in no time');

$node->stop('immediate');
done_testing();
