# FenceTest: what the TAP tests share.
#
# A test that expects a refusal names its SQLSTATE.  A test of two sessions never sleeps: it starts a
# statement, waits until the server says that it is blocked, and goes on.
package FenceTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  fenced_node server_version try_sql refused_ok accepted_ok query_is mark_is
  session ask start_blocked finish_blocked stop_process
);

# Statements fail with their SQLSTATE, and psql goes on where the test wants it to.
my @VERBOSE = ('-v', 'VERBOSITY=verbose');

# fenced_node(NAME, CONF, init parameters): a running server whose database postgres has the extension.  Tests
# present for names that no table is fenced by, which is no news to them.
sub fenced_node
{
	my ($name, $conf, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	# whatever locale the tests are run in
	$node->init(%params, extra => [ '--encoding=UTF8', '--no-locale', @{ $params{extra} // [] } ]);
	$node->append_conf('postgresql.conf',
		"autovacuum = off\nmax_prepared_transactions = 10\nlockfence.unknown_resource = ignore\n" . ($conf // ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION lockfence');
	return $node;
}

# 13, 15, ...
sub server_version
{
	my ($node) = @_;

	return int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000);
}

# Returns what the statements wrote, and their errors, with SQLSTATE.
sub try_sql
{
	my ($node, $db, $sql, %params) = @_;
	my (undef, $out, $err) = $node->psql($db, $sql, extra_params => \@VERBOSE, %params);

	return ($out, $err);
}

# refused_ok(NODE, DB, SQL, SQLSTATE, NAME [, MESSAGE])
sub refused_ok
{
	my ($node, $db, $sql, $code, $name, $message) = @_;
	my (undef, $err) = try_sql($node, $db, $sql);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($err, qr/ERROR:  \Q$code\E:/, $name);
	like($err, $message, "$name: message") if defined $message;
	return;
}

sub accepted_ok
{
	my ($node, $db, $sql, $name) = @_;
	my (undef, $err) = try_sql($node, $db, $sql);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	unlike($err, qr/ERROR|FATAL|PANIC/, $name);
	return;
}

sub query_is
{
	my ($node, $db, $sql, $expected, $name) = @_;
	my ($out, $err) = try_sql($node, $db, $sql);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($out . ($err =~ /ERROR|FATAL|PANIC/ ? $err : ''), $expected, $name);
	return;
}

# The mark of a resource; an empty string where there is none.
sub mark_is
{
	my ($node, $db, $resource, $expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, $db, "SELECT token FROM lockfence.mark WHERE resource = '$resource'",
		$expected, $name);
	return;
}

# A psql that stays.
sub session
{
	my ($node, $db) = @_;
	my $session = { node => $node, psql => $node->background_psql($db, on_error_stop => 0, extra_params => \@VERBOSE) };

	$session->{pid} = ask($session, 'SELECT pg_backend_pid()');
	return $session;
}

# Runs statements in a session; returns what they wrote, errors included.
sub ask
{
	my ($session, $sql) = @_;
	$session->{psql}->{stderr} = '';
	return finish_blocked($session, $sql);
}

# Starts a statement that is to wait for a lock; returns when it does.
sub start_blocked
{
	my ($session, $sql) = @_;

	$session->{psql}->{stderr} = '';
	$session->{psql}->query_until(qr/^started$/m, "\\echo started\n$sql;\n");
	$session->{node}->poll_query_until('postgres',
		"SELECT cardinality(pg_blocking_pids($session->{pid})) > 0")
	  or die "not blocked: $sql";
	return;
}

# Waits for the end of such a statement; returns what it wrote.  BackgroundPsql's own query() leaves its separator in
# an empty answer, and errors of one statement to the next, in some releases of PostgreSQL.
sub finish_blocked
{
	my ($session, $sql) = @_;
	my $psql = $session->{psql};
	my $end = 'end ' . ++$session->{asked};

	$sql //= '';
	$psql->{timeout}->start if $psql->{query_timer_restart};
	$psql->{stdin} .= "$sql\n;\n\\echo '$end'\n\\warn '$end'\n";
	$psql->{run}->pump until ($psql->{stdout} =~ /^$end\n/m && $psql->{stderr} =~ /^$end\n/m) || $psql->{timeout}->is_expired;
	die "no end of: $sql" if $psql->{timeout}->is_expired;
	s/\n?^$end\n//m foreach ($psql->{stdout}, $psql->{stderr});

	my $out = $psql->{stdout};
	$psql->{stdout} = '';
	return $out . $psql->{stderr};
}

# Stops a process of the server in its tracks, by backend type; returns its pid.
sub stop_process
{
	my ($node, $type) = @_;
	my $pid = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'");

	kill('STOP', $pid) == 1 or die "cannot stop the $type";
	return $pid;
}

1;
