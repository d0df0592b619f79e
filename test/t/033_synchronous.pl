# An advance is acknowledged when the synchronous standby has it, whatever synchronous_commit says: a failover
# must not let a holder in again that was fenced out.
#
# The standby's WAL receiver is stopped, so that a session that waits for it waits for good.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = fenced_node('primary', "synchronous_standby_names = ''\n", allows_streaming => 1);

$primary->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence'), lockfence.attach('doc');
	INSERT INTO batch VALUES (1, 'x', 10);
	INSERT INTO doc VALUES (1, 'x', 10);
});
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'\n");
$primary->reload;
$primary->poll_query_until('postgres', "SELECT sync_state = 'sync' FROM pg_stat_replication") or die 'no synchronous standby';

my $receiver = $standby->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walreceiver'");
my $s = session($primary, 'postgres');

# Commits while the standby does not answer; the commit has to wait for that.
sub waits_ok
{
	my ($name, $sql) = @_;

	kill('STOP', $receiver) == 1 or die 'no WAL receiver';
	$s->{psql}->{stderr} = '';
	$s->{psql}->query_until(qr/^started$/m, "\\echo started\n$sql;\n");
	ok($primary->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $s->{pid}"), $name);
	kill('CONT', $receiver);
	unlike(finish_blocked($s), qr/ERROR|WARNING/, "$name: and goes on");
	return;
}

# ... and this one does not.
sub returns_ok
{
	my ($name, $sql) = @_;

	kill('STOP', $receiver) == 1 or die 'no WAL receiver';
	is(ask($s, $sql), '', $name);
	kill('CONT', $receiver);
	return;
}

my $token = 20;
foreach my $setting ('off', 'local')
{
	ask($s, "SET synchronous_commit = $setting");
	waits_ok("$setting: an advance waits", 'UPDATE batch SET fence = ' . ++$token);
	returns_ok("$setting: a write by the same token does not", "UPDATE batch SET fence = $token");
	waits_ok("$setting: present() waits", "SELECT lockfence.present('batch-1', " . ++$token . ') > 0');
	waits_ok("$setting: an advance of a row fence waits", 'UPDATE doc SET fence = ' . ++$token);
	returns_ok("$setting: a write by the same token does not, on a row fence", "UPDATE doc SET fence = $token");
	waits_ok("$setting: an advance in a transaction waits at its end", 'BEGIN; UPDATE batch SET fence = ' . ++$token . '; COMMIT');
	returns_ok("$setting: the next transaction does not", "BEGIN; UPDATE batch SET fence = $token; COMMIT");
	returns_ok("$setting: nor does one whose advance was rolled back",
		'BEGIN; UPDATE batch SET fence = ' . ($token + 1) . '; ROLLBACK');
	returns_ok("$setting: nor the one after it", "UPDATE batch SET fence = $token");
	waits_ok("$setting: the setting changed after the advance does not count",
		'BEGIN; SET LOCAL synchronous_commit = on; UPDATE batch SET fence = ' . ++$token . "; SET LOCAL synchronous_commit = $setting; COMMIT");
	waits_ok("$setting: PREPARE TRANSACTION waits",
		'BEGIN; UPDATE batch SET fence = ' . ++$token . "; PREPARE TRANSACTION 'p'");
	ask($s, "COMMIT PREPARED 'p'");
	waits_ok("$setting: raise_mark() waits", "DO \$\$ BEGIN PERFORM lockfence.raise_mark('r', " . ++$token . ", 'a reason'); END \$\$");
	waits_ok("$setting: prune() waits", "DO \$\$ BEGIN PERFORM lockfence.prune('0'); END \$\$");
	waits_ok("$setting: set_epoch() waits", "DO \$\$ BEGIN PERFORM lockfence.set_epoch(0, 'a reason'); END \$\$")
	  if $setting eq 'off';
	is(ask($s, 'SHOW synchronous_commit'), $setting, "$setting: the setting is as it was");
}
ask($s, "SET synchronous_commit = remote_apply");
waits_ok('remote_apply stays', 'UPDATE batch SET fence = ' . ++$token);
is(ask($s, 'SHOW synchronous_commit'), 'remote_apply', 'as it was');
$s->{psql}->quit;

$primary->kill9;
$standby->promote;
refused_ok($standby, 'postgres', 'UPDATE batch SET fence = ' . ($token - 1), 'LF001', 'promoted: the last mark is there');

done_testing();
