# The grant of a session comes from its client, with the connection, and from nowhere else: whether the library is preloaded, or is
# loaded by the session's first use of it, when the setting has been a placeholder until then.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $WRITE = "UPDATE item SET note = 'x'";

# Runs statements, each to its end or error, in a session whose client gives these options; returns what they wrote, and the errors.
sub outcome
{
	my ($node, $options, $sql) = @_;

	local $ENV{PGOPTIONS} = $options;
	my ($out, $err) = try_sql($node, 'postgres', $sql, on_error_stop => 0);
	return join(' ', $out eq '' ? () : $out, $err =~ /(?:ERROR|FATAL|PANIC):  (\w{5}):/g);
}

sub grant { return '-c lockfence.session_grant=' . shift; }

# Each write as a holder, with the mark at 40.
sub outcome_is
{
	my ($node, $options, $sql, $expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql('postgres', "SET lockfence.bypass = on; SELECT lockfence.reset_mark('item', 40, 'test')");
	is(outcome($node, $options, $sql), $expected, $name);
	return;
}

sub test_sources
{
	my ($node, $how) = @_;

	outcome_is($node, '', $WRITE, 'LF002', "$how: without a grant");
	outcome_is($node, grant(43), $WRITE, '', "$how: with one");
	mark_is($node, 'postgres', 'item', 43, "$how: it has raised the mark");
	outcome_is($node, grant('item=44'), $WRITE, '', "$how: by name");
	mark_is($node, 'postgres', 'item', 44, "$how: that has raised the mark");
	outcome_is($node, grant(39), $WRITE, 'LF001', "$how: a stale one");
	outcome_is($node, grant("\xff=43"), $WRITE, 'LF003', "$how: no text");

	# in the session
	foreach my $change ("SET lockfence.session_grant = '99'", "SELECT FROM set_config('lockfence.session_grant', '99', false)",
		"BEGIN; SET LOCAL lockfence.session_grant = '99'; COMMIT",
		'RESET ALL', 'DISCARD ALL')
	{
		outcome($node, '', "$change; $WRITE");
		mark_is($node, 'postgres', 'item', 40, "$how: no grant by $change");
		$node->safe_psql('postgres', "SELECT lockfence.reset_mark('item', 40, 'test')");
		outcome($node, grant(43), "$change; LOAD 'lockfence'; $WRITE");
		mark_is($node, 'postgres', 'item', 43, "$how: nor instead of the grant");
		$node->safe_psql('postgres', "SELECT lockfence.reset_mark('item', 40, 'test')");
	}
	outcome($node, '', "BEGIN; SET LOCAL lockfence.session_grant = '99'; $WRITE; COMMIT");
	mark_is($node, 'postgres', 'item', 40, "$how: no grant of a transaction");
	outcome($node, '', 'SELECT write_by_setting()');
	mark_is($node, 'postgres', 'item', 40, "$how: no grant of a function");

	# for the sessions of a role, a database, or all
	foreach my $where ('ROLE postgres', 'DATABASE postgres', 'ROLE postgres IN DATABASE postgres', 'ROLE ALL')
	{
		outcome($node, '', "ALTER $where SET lockfence.session_grant = '99'");
		outcome_is($node, '', $WRITE, 'LF002', "$how: no grant by ALTER $where");
		outcome($node, grant(43), $WRITE);
		mark_is($node, 'postgres', 'item', 43, "$how: nor instead of the grant");
		outcome($node, '', "ALTER $where RESET lockfence.session_grant");
		query_is($node, 'postgres', 'SELECT count(*) FROM pg_db_role_setting', 0, "$how: nothing is left of ALTER $where");
	}
	return;
}

my $node = fenced_node('granted', "shared_preload_libraries = 'lockfence'");
$node->safe_psql('postgres', q{
	CREATE TABLE item (note text);
	SELECT lockfence.attach('item', 'item');
	BEGIN; SELECT lockfence.present(40); INSERT INTO item SELECT 'new' FROM generate_series(1, 1000); COMMIT;
});
my $function = q{CREATE FUNCTION write_by_setting() RETURNS void LANGUAGE plpgsql SET lockfence.session_grant = '99'
	AS $$BEGIN UPDATE item SET note = 'y'; END$$};
refused_ok($node, 'postgres', "LOAD 'lockfence'; $function", '55P02', 'a function cannot set it');

test_sources($node, 'preloaded');

# ---- what a session with a grant does besides

# A parallel worker takes over the leader's settings.
like(outcome($node, grant(43), 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;'
	. 'EXPLAIN (ANALYZE, COSTS off) SELECT count(*) FROM item'), qr/Workers Launched: [12]/, 'parallel workers start');

# A prepared transaction keeps what was accepted under the grant, and a crash does not take it.
outcome_is($node, grant(45), "BEGIN; $WRITE; PREPARE TRANSACTION 'granted'", '', 'a transaction is prepared under a grant');
is(outcome($node, grant(45), 'SELECT count(*) FROM lockfence.presented()'), '1', 'the next one of the session has the grant alone');
$node->stop('immediate');
$node->start;
outcome($node, '', "COMMIT PREPARED 'granted'");
mark_is($node, 'postgres', 'item', 45, 'it is committed by a session without one, after a crash');
is(outcome($node, grant(44), $WRITE), 'LF001', 'and a stale session is out');

# ---- set for the server, which takes nothing from it

$node->append_conf('postgresql.conf', "lockfence.session_grant = '99'");
$node->reload;
outcome_is($node, '', $WRITE, 'LF002', 'no grant by the configuration file, reloaded');
$node->restart;
outcome_is($node, '', $WRITE, 'LF002', 'nor at the start of the server');
outcome_is($node, grant(43), $WRITE, '', 'nor in the way of one');
mark_is($node, 'postgres', 'item', 43, 'which is the client\'s');

# ---- the same where the first use of the library loads it

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
outcome_is($node, '', $WRITE, 'LF002', 'no grant by the configuration file, not preloaded');
outcome_is($node, grant(43), $WRITE, '', 'nor in the way of one');
mark_is($node, 'postgres', 'item', 43, 'which is the client\'s');
$node->append_conf('postgresql.conf', "lockfence.session_grant = ''");
$node->restart;
$node->safe_psql('postgres', $function);
test_sources($node, 'not preloaded');

done_testing();
