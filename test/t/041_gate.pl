# A database that went back in time: restored to a point in it, or promoted without the last of its primary's
# WAL.  The gate finds out, and refuses every write, or says what may be missing; reopen() keeps out every
# holder that had a token before.
use strict;
use warnings;

use File::Spec;
use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $PRELOAD = "shared_preload_libraries = 'lockfence'\n";

my $archive = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);

# To archive as, and to restore what was archived as.
sub archiving { return "archive_mode = on\narchive_command = 'cp %p $archive/$_[0].%f'\n"; }
sub restoring { return "restore_command = 'cp $archive/$_[0].%f %p'\n"; }

my $primary = fenced_node('primary', $PRELOAD . archiving('primary'), allows_streaming => 1);
$primary->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence'), lockfence.attach('doc');
	CREATE DATABASE other;
	CREATE ROLE app;
	GRANT SELECT, UPDATE ON batch TO app;
});
$primary->safe_psql('other', q{
	CREATE EXTENSION lockfence;
	CREATE TABLE batch (id int PRIMARY KEY);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
});
$primary->backup('base');
my $backups = 0;

sub gate_is
{
	my ($node, $db, $expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, $db, 'SELECT state, recorded_timeline, timeline, event FROM lockfence.gate()', $expected, $name);
	return;
}

sub findings_are
{
	my ($node, $db, $expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, $db, 'SELECT severity, code FROM lockfence.verify() ORDER BY code', $expected, $name);
	return;
}

sub archived
{
	my ($node) = @_;
	my $segment = $node->safe_psql('postgres', 'SELECT pg_walfile_name(pg_switch_wal())');

	$node->poll_query_until('postgres', "SELECT last_archived_wal >= '$segment' FROM pg_stat_archiver")
	  or die 'not archived';
	return;
}

# A node recovered from the base backup and the archive of another, and on its own since.
sub recovered
{
	my ($name, $from, $backup, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($from, $backup);
	$node->set_recovery_mode;
	$node->append_conf('postgresql.conf', join("\n", 'archive_mode = off', restoring($from->name), @settings, ''));
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'still in recovery';
	# or who follows would recover to there as well
	$node->append_conf('postgresql.conf', "recovery_target_name = ''\nrestore_command = ''");
	return $node;
}

# A standby that has all there is.
sub standby_of
{
	my ($name, $from, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	my $backup = 'base-' . ++$backups;

	$from->backup($backup);
	$node->init_from_backup($from, $backup, has_streaming => 1);
	$node->append_conf('postgresql.conf', join("\n", 'archive_mode = off', @settings, ''));
	$node->start;
	# something that it gets from its primary, and not with the backup
	$from->safe_psql('postgres', "SELECT pg_logical_emit_message(true, 'gate', 'here')");
	$from->wait_for_catchup($node, 'replay', $from->lsn('flush'));
	return $node;
}

# lockfence.on_timeline_change, in force in every session to come.
sub set_policy
{
	my ($node, $policy) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET lockfence.on_timeline_change = $policy");
	$node->reload;
	$node->poll_query_until('postgres',
		"SELECT current_setting('lockfence.on_timeline_change') = '$policy'") or die 'not set';
	return;
}

my $admin_log = "SELECT action, before, after FROM lockfence.admin_log WHERE action IN ('timeline', 'reopen') ORDER BY id";

# ---- to a point in time

$primary->safe_psql('postgres', q{
	INSERT INTO batch VALUES (1, 'x', 10);
	INSERT INTO doc VALUES (1, 'x', 10);
	SELECT pg_create_restore_point('noon');
});
# The next holder, who is forgotten then.
$primary->safe_psql('postgres', q{
	UPDATE batch SET fence = 50;
	UPDATE doc SET fence = 50;
});
refused_ok($primary, 'postgres', 'UPDATE batch SET fence = 10', 'LF001', 'before: a stale token is refused');
gate_is($primary, 'postgres', 'open|1|1|', 'before: the gate is open');
archived($primary);

my $restored = recovered('restored', $primary, 'base', "recovery_target_name = 'noon'", "recovery_target_action = 'promote'");
mark_is($restored, 'postgres', 'batch-1', 10, 'restored: the mark went back');
gate_is($restored, 'postgres', 'sealed|1|2|point-in-time recovery', 'restored: the gate is shut');
query_is($restored, 'postgres', 'SELECT reason FROM lockfence.gate()', 'at restore point "noon"', 'restored: and says why');
refused_ok($restored, 'postgres', $_, 'LF005', "restored: sealed: $_", qr/from timeline 1 to 2.*point-in-time recovery: at restore point "noon"/)
  foreach ('UPDATE batch SET fence = 10', 'UPDATE batch SET fence = 60', "UPDATE batch SET note = 'y'",
	'UPDATE doc SET fence = 10', "INSERT INTO doc VALUES (2, 'y')", "SELECT lockfence.present('new', 60)");
query_is($restored, 'postgres', "SELECT lockfence.is_current('batch-1', 60)", 'f', 'restored: no token is current');
findings_are($restored, 'postgres', 'warning|sealed', 'restored: verify() tells');
query_is($restored, 'postgres', "SELECT sealed FROM lockfence.stats WHERE target = 'batch'::regclass", 3, 'restored: counted');
ok($restored->log_contains(qr/fence refusal: code=LF005 action=refused schema="public" table="batch" resource="batch-1"/),
	'restored: and logged');
$restored->restart;
gate_is($restored, 'postgres', 'sealed|1|2|point-in-time recovery', 'restarted: still shut');
refused_ok($restored, 'other', 'INSERT INTO batch VALUES (1, 10)', 'LF005', 'restored: every database is sealed');

# ... again from the same backup, whose archive does not know of the first: the number comes a second time
my $twice = recovered('twice', $primary, 'base', "recovery_target_name = 'noon'", "recovery_target_action = 'promote'");
gate_is($twice, 'postgres', 'sealed|1|2|point-in-time recovery', 'restored twice: shut as well');
set_policy($twice, 'warn');
accepted_ok($twice, 'postgres', 'UPDATE batch SET fence = 10', 'restored, warn: the zombie is let in');
like((try_sql($twice, 'other', 'INSERT INTO batch VALUES (1, 10)'))[1], qr/WARNING:  01000: the database has changed its timeline/,
	'restored, warn: with a warning, once in each database');
query_is($twice, 'postgres', $admin_log, 'timeline|1|2', 'restored, warn: what happened is on record');
findings_are($twice, 'postgres', 'info|timeline_ignored', 'restored, warn: verify() tells of the setting');
$twice->stop;

# ---- from a standby of a sealed one: one promotion later it is as sealed

my $second = standby_of('second', $restored);
gate_is($second, 'postgres', 'standby|1|2|', 'a standby of it: tells what it has');
$second->promote;
gate_is($second, 'postgres', 'sealed|1|3|point-in-time recovery', 'its standby, promoted: as sealed');
$second->stop;

# ---- reopen()

refused_ok($restored, 'postgres', "SET ROLE app; SELECT lockfence.reopen(60, 'x')", '42501', 'reopen() is for administrators');
accepted_ok($restored, 'postgres', "SELECT lockfence.reopen(51, 'restored to noon')", 'reopened');
gate_is($restored, 'postgres', 'open|2|2|', 'reopened: the gate is open');
findings_are($restored, 'postgres', '', 'reopened: verify() finds nothing');
foreach my $stale (10, 50)
{
	refused_ok($restored, 'postgres', "UPDATE batch SET fence = $stale", 'LF001', "reopened: token $stale is stale");
	refused_ok($restored, 'postgres', "UPDATE doc SET fence = $stale", 'LF001', "reopened: token $stale is stale on a row fence");
	refused_ok($restored, 'postgres', "INSERT INTO batch VALUES (2, 'y', $stale)", 'LF001', "reopened: token $stale is stale for a new resource");
}
accepted_ok($restored, 'postgres', 'UPDATE batch SET fence = 51', 'reopened: a token issued since is accepted');
accepted_ok($restored, 'postgres', 'UPDATE doc SET fence = 51', 'reopened: on a row fence, too');
query_is($restored, 'postgres', $admin_log, 'reopen||51', 'reopened: audited');
refused_ok($restored, 'other', 'INSERT INTO batch VALUES (1, 60)', 'LF005', 'reopened: but not the other database');
$restored->restart;
accepted_ok($restored, 'postgres', 'UPDATE batch SET fence = 51', 'restarted: still open');
$restored->stop('immediate');
$restored->start;
gate_is($restored, 'postgres', 'open|2|2|', 'crashed: still open');
accepted_ok($restored, 'postgres', 'UPDATE batch SET fence = 51', 'crashed: accepted');
refused_ok($restored, 'postgres', 'UPDATE batch SET fence = 50', 'LF001', 'crashed: the floor is there');

# ... and restored once more, to a point in its own time
$restored->append_conf('postgresql.conf', archiving('restored'));
$restored->restart;
$restored->backup('base');
$restored->safe_psql('postgres', q{SELECT pg_create_restore_point('evening')});
$restored->safe_psql('postgres', 'UPDATE batch SET fence = 70');
archived($restored);
my $again = recovered('again', $restored, 'base', "recovery_target_name = 'evening'", "recovery_target_action = 'promote'");
gate_is($again, 'postgres', 'sealed|2|3|point-in-time recovery', 'restored again: shut again');
refused_ok($again, 'postgres', 'UPDATE batch SET fence = 60', 'LF005', 'restored again: refused');
accepted_ok($again, 'postgres', "SELECT lockfence.reopen(71, 'restored to the evening')", 'restored again: reopened');
refused_ok($again, 'postgres', 'UPDATE batch SET fence = 60', 'LF001', 'restored again: stale');
$again->stop;

# ... to the end of the archive: that has no target, but no primary either
my $end = recovered('end', $primary, 'base');
gate_is($end, 'postgres', 'sealed|1|2|archive recovery', 'to the end of the archive: shut');
set_policy($end, 'warn');
accepted_ok($end, 'postgres', 'UPDATE batch SET fence = 50', 'to the end of the archive: warn lets pass');
$end->stop;

# ---- a backup that is started without recovery keeps its timeline: nothing is to be seen

my $raw = PostgreSQL::Test::Cluster->new('raw');
$raw->init_from_backup($primary, 'base');
$raw->append_conf('postgresql.conf', 'archive_mode = off');
$raw->start;
gate_is($raw, 'postgres', 'open|1|1|', 'raw: nothing is noticed');
$raw->safe_psql('postgres', q{SELECT lockfence.reopen(51, 'old snapshot')});
refused_ok($raw, 'postgres', "INSERT INTO batch VALUES (1, 'x', 10)", 'LF001', 'raw: but reopen() does the same');
$raw->stop;

# ---- a standby that lags and is promoted

$primary->safe_psql('postgres', 'UPDATE batch SET fence = 60; UPDATE doc SET fence = 60');
my $lagging = standby_of('lagging', $primary);
# It follows no more, as if cut off, before the next holder comes.
$lagging->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = 'host=/nowhere'});
$lagging->reload;
$lagging->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_wal_receiver') or die 'still receives';
$primary->safe_psql('postgres', 'UPDATE batch SET fence = 70; UPDATE doc SET fence = 70');
gate_is($lagging, 'postgres', 'standby|1|1|', 'standby: has no gate of its own');
findings_are($lagging, 'postgres', '', 'standby: verify() finds nothing');
set_policy($lagging, 'seal');
$lagging->promote;
mark_is($lagging, 'postgres', 'batch-1', 60, 'promoted: the last mark is missing');
gate_is($lagging, 'postgres', 'sealed|1|2|promotion', 'promoted, seal: shut');
refused_ok($lagging, 'postgres', 'UPDATE batch SET fence = 60', 'LF005', 'promoted, seal: the zombie is kept out',
	qr/by promotion: no recovery target specified/);
set_policy($lagging, 'auto');
gate_is($lagging, 'postgres', 'changed|1|2|promotion', 'promoted, auto: to go on');
findings_are($lagging, 'postgres', 'warning|timeline_changed', 'promoted, auto: verify() tells');

# What is rolled back, or prepared, or only asked, leaves the record to others.
accepted_ok($lagging, 'postgres', 'BEGIN; UPDATE batch SET fence = 80; ROLLBACK', 'promoted, auto: rolled back');
accepted_ok($lagging, 'postgres', "BEGIN; UPDATE doc SET fence = 60; PREPARE TRANSACTION 'later'", 'promoted, auto: prepared');
query_is($lagging, 'postgres', "SELECT lockfence.is_current('batch-1', 60)", 't', 'promoted, auto: asked');
gate_is($lagging, 'postgres', 'changed|1|2|promotion', 'promoted, auto: nothing is on record yet');
my ($out, $err) = try_sql($lagging, 'postgres', q{SET ROLE app; UPDATE batch SET fence = 60; SELECT current_user});
is($out, 'app', 'promoted, auto: the zombie is let in');
like($err, qr/WARNING:  01000: the database has changed its timeline.*by promotion: no recovery target specified/s,
	'promoted, auto: with a warning');
gate_is($lagging, 'postgres', 'open|2|2|', 'promoted, auto: on record');
query_is($lagging, 'postgres', $admin_log, 'timeline|1|2', 'promoted, auto: and in the log of administration');
is((try_sql($lagging, 'postgres', 'UPDATE batch SET fence = 60'))[1], '', 'promoted, auto: no session is warned twice');
accepted_ok($lagging, 'postgres', "COMMIT PREPARED 'later'", 'promoted, auto: the prepared transaction commits');
accepted_ok($lagging, 'other', 'INSERT INTO batch VALUES (1, 10)', 'promoted, auto: the other database on its own');
set_policy($lagging, 'seal');
accepted_ok($lagging, 'postgres', 'UPDATE batch SET fence = 60', 'promoted: what is on record is not judged again');
$lagging->stop;

# ---- ... and has heard of WAL that it never got

my $behind = standby_of('behind', $primary);
# The walsender is stopped while there comes to be far more than fits into a message and the socket's buffers, and the
# primary dies before the standby takes any of it.
my $sender = stop_process($primary, 'walsender');
$primary->safe_psql('postgres', 'UPDATE batch SET fence = 90');
$primary->safe_psql('postgres', "CREATE TABLE filler AS SELECT repeat('x', 1000) FROM generate_series(1, 20000)");
my $receiver = stop_process($behind, 'walreceiver');
my $had = $behind->safe_psql('postgres', 'SELECT pg_last_wal_receive_lsn()');
kill('CONT', $sender);
$primary->poll_query_until('postgres', "SELECT sent_lsn > '$had' FROM pg_stat_replication WHERE application_name = 'behind'")
  or die 'nothing is sent';
$primary->stop('immediate');
kill('CONT', $receiver);
$behind->poll_query_until('postgres', "SELECT pg_last_wal_receive_lsn() > '$had'") or die 'nothing is received';
$behind->promote;
gate_is($behind, 'postgres', 'sealed|1|2|promotion with loss', 'promoted with a gap: shut');
refused_ok($behind, 'postgres', 'UPDATE batch SET fence = 80', 'LF005', 'promoted with a gap: refused',
	qr/its primary had written WAL that it never received/);
$behind->restart;
gate_is($behind, 'postgres', 'changed|1|2|promotion', 'restarted: what the standby had heard is forgotten');
$behind->stop;

# ---- a synchronous standby lacks nothing

$primary->start;
my $synchronous = standby_of('synchronous', $primary);
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'synchronous'");
$primary->reload;
$primary->poll_query_until('postgres', "SELECT sync_state = 'sync' FROM pg_stat_replication") or die 'not synchronous';
$primary->safe_psql('postgres', 'UPDATE batch SET fence = 100; UPDATE doc SET fence = 100');
$primary->stop('immediate');
$synchronous->promote;
mark_is($synchronous, 'postgres', 'batch-1', 100, 'synchronous: the mark is there');
refused_ok($synchronous, 'postgres', "UPDATE $_ SET fence = 99", 'LF001', "synchronous: stale token is refused: $_")
  foreach ('batch', 'doc');
accepted_ok($synchronous, 'postgres', "UPDATE $_ SET fence = 100", "synchronous: the holder goes on: $_")
  foreach ('batch', 'doc');
gate_is($synchronous, 'postgres', 'open|2|2|', 'synchronous: on record');

# ---- a session from before the promotion, and the next promotion

my $next = standby_of('next', $synchronous);
my $session = session($next, 'postgres');
is(ask($session, "SELECT lockfence.is_current('batch-1', 100)"), 't', 'session: reads on the standby');
like(ask($session, "SELECT lockfence.present('batch-1', 100)"), qr/ERROR:  25006:/, 'session: cannot present there');
set_policy($next, 'seal');
$synchronous->stop('immediate');
$next->promote;
like(ask($session, 'UPDATE batch SET fence = 100'), qr/ERROR:  LF005:.*from timeline 2 to 3/s, 'session: finds the gate shut after promotion');
set_policy($next, 'ignore');
is(ask($session, 'SELECT 1'), '1', 'session: reads its settings');
is(ask($session, 'UPDATE batch SET fence = 100'), '', 'ignore: goes on without a word');
gate_is($next, 'postgres', 'open|3|3|', 'ignore: on record');

done_testing();
