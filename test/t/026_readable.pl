# What is said while a statement waits, to a role that may write to a row and not read it: the fence's template stands
# in the place of the resource's name, which holds the row's values.  What a refusal says is in test/sql/readable.sql.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('readable', "shared_preload_libraries = 'lockfence'\nlog_error_verbosity = verbose\n");
$node->safe_psql('postgres', q{
	CREATE TABLE patient (id integer, note text);
	SELECT lockfence.attach('patient', 'ward:{id}', 'token');
	INSERT INTO patient VALUES (4711, 'new', 10);
	CREATE ROLE blind LOGIN;
	ALTER ROLE blind SET lockfence.preempt = on;
	GRANT UPDATE ON patient TO blind;
	GRANT USAGE ON SCHEMA lockfence TO blind;
	CREATE ROLE seeing LOGIN;
	GRANT SELECT, UPDATE ON patient TO seeing;
});

# What a role is told that wants to advance the mark and gives up.
sub told
{
	my ($role) = @_;
	my (undef, $err) = try_sql($node, 'postgres', q{SET lock_timeout = '200ms'; UPDATE patient SET note = 'x', token = 11},
		extra_params => [ '-v', 'VERBOSITY=verbose', '-U', $role ]);

	return $err;
}

my $holder = session($node, 'postgres');
ask($holder, "BEGIN; SELECT lockfence.present('ward:4711', 10)");
my $told = told('blind');
like($told, qr/WARNING: .*which holds resource "ward:\{id\}" by a stale token/, 'a holder that cannot be ended');
like($told, qr/ERROR:  55P03.*CONTEXT:  .*while waiting for other holders of resource "ward:\{id\}"/s, 'a wait that was given up');
unlike($told, qr/4711/, 'the row is not told');
like(told('seeing'), qr/while waiting for other holders of resource "ward:4711"/, 'to whom may read it, it is');
ask($holder, 'ROLLBACK');

# a prepared transaction, which has no backend to end
ask($holder, "BEGIN; SELECT lockfence.present('ward:4711', 10); PREPARE TRANSACTION 'p'");
$told = told('blind');
like($told, qr/WARNING: .*waiting for prepared transaction "p", which holds resource "ward:\{id\}"/, 'a prepared holder');
unlike($told, qr/4711/, 'a prepared holder: the row is not told');
ask($holder, "COMMIT PREPARED 'p'");

# the holder is the one who may not read the row, and is ended
ask($holder, "SET ROLE blind; BEGIN; UPDATE patient SET note = 'x', token = 10");
is($node->safe_psql('postgres', "SET lockfence.preempt = on; SELECT lockfence.present('ward:4711', 11)"), 10, 'preemption');
$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $holder->{pid})")
  or die 'not terminated';
my $log = slurp_file($node->logfile);
like($log, qr/LOG:.*terminating process $holder->{pid}, which holds resource "ward:4711" by a stale token/, 'the log has the name');
like($log, qr/FATAL:  57P01.*\n.*DETAIL:  The transaction held the resource of a row by a stale token/, 'what the holder is told does not');
eval { $holder->{psql}->quit };

done_testing();
