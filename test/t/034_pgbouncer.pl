# Many clients on one server connection, through a real PgBouncer: a token ends with the transaction that
# presented it, whatever client has the connection next, and however its statements are sent.
use strict;
use warnings;

use DBD::Pg qw(PG_ASYNC);
use DBI;
use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('pooled');

$node->safe_psql('postgres', q{
	CREATE ROLE app LOGIN;
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	GRANT ALL ON batch, job TO app;
	GRANT EXECUTE ON FUNCTION lockfence.present(lockfence.fence_token),
		lockfence.present(text, lockfence.fence_token),
		lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token) TO app;
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
	SELECT lockfence.attach('job', 'jobs');
	INSERT INTO batch SELECT g, 'x', 10 FROM generate_series(1, 20) g;
	BEGIN; SELECT lockfence.present(10); INSERT INTO job VALUES (1, 'x'); COMMIT;
});

# ---- the pooler

$ENV{PATH} .= ':/usr/sbin';
my $dir = PostgreSQL::Test::Utils::tempdir_short;
my $PORT = 6432;		# names a socket in $dir and no more
my $pooler;

# Every pool but the last is one server connection.
sub start_pooler
{
	my (@settings) = @_;
	my $server = "host=@{[$node->host]} port=@{[$node->port]} dbname=postgres user=app";

	# Protocol-level prepared statements, where PgBouncer can follow them.
	my ($minor) = `pgbouncer --version` =~ /^PgBouncer 1\.(\d+)/ or die 'no pgbouncer here';
	push(@settings, 'max_prepared_statements = 20') if $minor >= 21;

	open(my $ini, '>', "$dir/pgbouncer.ini") or die $!;
	print $ini join("\n", '[databases]',
		"transaction = $server pool_mode=transaction pool_size=1",
		"session = $server pool_mode=session pool_size=1",
		"statement = $server pool_mode=statement pool_size=1",
		"many = $server pool_mode=transaction pool_size=2",
		'[pgbouncer]', "unix_socket_dir = $dir", 'listen_addr =', "listen_port = $PORT", 'auth_type = any',
		"logfile = $dir/pgbouncer.log", @settings, '');
	close($ini);
	$pooler = IPC::Run::start([ 'pgbouncer', '-q', "$dir/pgbouncer.ini" ], \undef, '>&', "$dir/pgbouncer.err");
	wait_for(sub { DBI->connect(dsn('pgbouncer'), 'pgbouncer', '', { PrintError => 0 }) });
	return;
}

sub stop_pooler
{
	$pooler->kill_kill if $pooler;
	undef $pooler;
	return;
}
END { stop_pooler() }

sub wait_for
{
	my ($happens) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $happens->();
		select(undef, undef, undef, 0.1);
	}
	die 'waited in vain';
}

# ---- clients

sub dsn { return "dbi:Pg:host=$dir;port=$PORT;dbname=" . shift; }

sub client
{
	my ($pool) = @_;

	return DBI->connect(dsn($pool), 'app', '', { PrintError => 0, RaiseError => 0 }) || die $DBI::errstr;
}

# Runs statements as one simple query; returns 'ok' or the SQLSTATE.
sub outcome
{
	my ($client, $sql) = @_;

	return defined $client->do($sql, { pg_direct => 1 }) ? 'ok' : $client->state;
}

# One statement by the extended protocol, with an unnamed statement.
sub extended
{
	my ($client, $sql, @values) = @_;

	local $client->{pg_server_prepare} = 0;
	return defined $client->do($sql, undef, @values) ? 'ok' : $client->state;
}

sub value
{
	my ($client, $sql) = @_;

	return $client->selectrow_array($sql) // $client->errstr;
}

my $WRITE = "UPDATE batch SET note = 'y' WHERE id = 1";
my $TABLE_WRITE = "UPDATE job SET note = 'y'";
my $PRESENT = "SELECT lockfence.present(10); SELECT lockfence.present('jobs', 10)";

sub nothing_left
{
	my ($after, %clients) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $name (sort keys %clients)
	{
		my $client = $clients{$name};

		is(value($client, 'SELECT count(*) FROM lockfence.presented()'), 0, "after $after, $name has presented nothing");
		is(outcome($client, $WRITE), 'LF002', "after $after, $name cannot write");
		is(outcome($client, "BEGIN; $TABLE_WRITE"), 'LF002', "after $after, $name cannot write to a constant fence");
		outcome($client, 'ROLLBACK');
		is(extended($client, 'UPDATE batch SET note = $1 WHERE id = 1', 'y'), 'LF002',
			"after $after, $name cannot write by the extended protocol");
	}
	return;
}

# ---- transaction pooling

my %ends = (
	'COMMIT' => ['COMMIT'],
	'ROLLBACK' => ['ROLLBACK'],
	'an error' => [ 'SELECT 1/0', 'ROLLBACK' ],
	'COMMIT of a failed transaction' => [ 'SELECT 1/0', 'COMMIT' ],
	'a stale token' => [ "SELECT lockfence.present('batch-2', 1)", 'ROLLBACK' ],
	'ROLLBACK TO' => [ 'SAVEPOINT a', 'SELECT lockfence.present(11)', 'SELECT 1/0', 'ROLLBACK TO a', 'COMMIT' ],
	'COMMIT AND CHAIN' => [ 'COMMIT AND CHAIN', 'COMMIT' ],
	'DISCARD ALL' => [ 'COMMIT', 'DISCARD ALL' ]);

sub test_transactions
{
	my ($settings) = @_;
	my ($a, $b) = (client('transaction'), client('transaction'));

	is(value($a, 'SELECT pg_backend_pid()'), value($b, 'SELECT pg_backend_pid()'), "$settings: two clients, one backend");
	foreach my $end (sort keys %ends)
	{
		is(outcome($a, "BEGIN; $PRESENT"), 'ok', 'one presents');
		is(outcome($a, "$WRITE; $TABLE_WRITE"), 'ok', 'and writes');
		is(value($a, 'SELECT count(*) FROM lockfence.presented()'), 3, "presented before $end");
		outcome($a, $_) foreach @{ $ends{$end} };
		nothing_left("$end ($settings)", 'the next client' => $b, 'the same client' => $a);
	}

	# The extended protocol, one message per statement.
	extended($a, 'BEGIN');
	is(extended($a, 'SELECT lockfence.present($1)', 10), 'ok', 'a token as a parameter');
	is(extended($a, 'UPDATE batch SET note = $1', 'z'), 'ok', 'of the extended protocol');
	extended($a, 'COMMIT');
	nothing_left("extended COMMIT ($settings)", 'the next client' => $b, 'the same client' => $a);

	# In autocommit, present() is a transaction of its own.
	is(outcome($a, 'SELECT lockfence.present(10)'), 'ok', 'present() alone');
	nothing_left("present() alone ($settings)", 'the next client' => $b, 'the same client' => $a);
	is(outcome($a, "SELECT lockfence.present(10); $WRITE"), 'ok', 'one message is one transaction');
	is(outcome($a, 'UPDATE batch SET fence = 10 WHERE id = 1'), 'ok', 'a token in the column needs none');
	is(value($a, q{SELECT lockfence.guarded_update('batch', '{"id": 1}', '{"note": "g"}', 10)}), 1, 'nor does guarded_update()');
	nothing_left("guarded_update() ($settings)", 'the next client' => $b, 'the same client' => $a);

	# In turns: a client that waits for the connection finds nothing on it.
	is(outcome($a, "BEGIN; $PRESENT; $WRITE"), 'ok', 'one client has the connection');
	$b->do($WRITE, { pg_async => PG_ASYNC });
	my $admin = DBI->connect(dsn('pgbouncer'), 'pgbouncer', '', { pg_server_prepare => 0 });
	wait_for(sub
	{
		my ($pool) = grep { $_->{database} eq 'transaction' }
			@{ $admin->selectall_arrayref('SHOW POOLS', { Slice => {}, pg_direct => 1 }) };
		return $pool->{cl_waiting} == 1;
	});
	is(outcome($a, "$TABLE_WRITE; COMMIT"), 'ok', 'another one waits for it');
	$b->pg_result;
	is($b->state, 'LF002', 'and gets it without the token');

	# A client that vanishes.
	foreach my $state ('', '; SELECT 1/0')
	{
		my $gone = client('transaction');

		outcome($gone, "BEGIN; SELECT lockfence.present(11); SELECT lockfence.present('jobs', 11); $WRITE; $TABLE_WRITE");
		outcome($gone, 'SELECT 1/0') if $state;
		$gone->disconnect;
		nothing_left("a client is gone amid its transaction$state ($settings)", 'the next client' => $b);
		is(outcome($b, "BEGIN; $PRESENT; $WRITE; COMMIT"), 'ok', 'and its advance is gone as well');
	}
	return;
}

# Statements prepared once on the one connection, and executed in transactions of either client.
sub test_prepared
{
	my ($a, $b) = (client('transaction'), client('transaction'));

	# by SQL
	outcome($a, "BEGIN; PREPARE show AS SELECT lockfence.present(10); PREPARE write AS $WRITE; COMMIT");
	foreach my $round (1 .. 7)		# the plan gets generic on the way
	{
		is(outcome($a, 'BEGIN; EXECUTE show; EXECUTE write; COMMIT'), 'ok', 'prepared, presented and written');
		is(outcome($a, 'EXECUTE write'), 'LF002', 'the prepared write alone');
		is(outcome($b, 'EXECUTE write'), 'LF002', 'the same by another client');
		is(outcome($b, 'BEGIN; EXECUTE show; ROLLBACK; EXECUTE write'), 'LF002', 'after the prepared present()');
	}
	outcome($a, 'DEALLOCATE show; DEALLOCATE write');

	# by the protocol
	my $show = $a->prepare('SELECT lockfence.present($1)', { pg_prepare_now => 1, pg_switch_prepared => 0 });
	my $write = $a->prepare('UPDATE batch SET note = $1 WHERE id = 1', { pg_prepare_now => 1, pg_switch_prepared => 0 });
	foreach my $round (1 .. 7)
	{
		outcome($a, 'BEGIN');
		ok($show->execute(10), 'a prepared present()');
		is($write->execute('p'), 1, 'lets a prepared statement write');
		outcome($a, 'COMMIT');
		is(outcome($b, $WRITE), 'LF002', 'but no other client');
		ok(!defined $write->execute('p'), 'nor itself in the next transaction');
		is($write->state, 'LF002', 'for lack of a token');
	}
	my ($name) = $a->selectrow_array(
		q{SELECT quote_ident(name) FROM pg_prepared_statements WHERE statement LIKE 'UPDATE batch%' AND NOT from_sql});
	is(outcome($b, "EXECUTE $name('p')"), 'LF002', "nor another client by this one's prepared statement");
	return;
}

start_pooler();
test_transactions('as installed');
test_prepared();
stop_pooler();
start_pooler('server_reset_query_always = 1');
test_transactions('always reset');

# ---- the other ways to pool

foreach my $end ('COMMIT', 'ROLLBACK', '')
{
	my $a = client('session');

	is(outcome($a, "BEGIN; $PRESENT; $WRITE; $end"), 'ok', 'session pooling: one client');
	$a->disconnect;
	nothing_left("session pooling and " . ($end || 'no end'), 'the next client' => client('session'));
}

my ($a, $b) = (client('statement'), client('statement'));
is(outcome($a, "SELECT lockfence.present(10)"), 'ok', 'statement pooling: present()');
nothing_left_by_statement($b);
is(value($a, "SELECT lockfence.present('jobs', 12)"), 10, 'with a resource, it raises the mark');
is(outcome($a, "SELECT lockfence.present('jobs', 11)"), 'LF001', 'for good');
is(outcome($a, 'UPDATE batch SET fence = 10 WHERE id = 1'), 'ok', 'a token in the column does without a transaction');
nothing_left_by_statement($b);
$_->disconnect foreach ($a, $b);

# There is no BEGIN here.
sub nothing_left_by_statement
{
	my ($client) = @_;

	is(value($client, 'SELECT count(*) FROM lockfence.presented()'), 0, 'statement pooling: nothing is presented');
	is(outcome($client, $_), 'LF002', 'statement pooling: no write') foreach ($WRITE, $TABLE_WRITE);
	return;
}

# ---- many clients on two connections, each with a batch of its own

$node->safe_psql('postgres', q{
	CREATE FUNCTION expect_nothing(own int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		IF EXISTS (SELECT FROM lockfence.presented()) THEN
			RAISE 'something is presented: %', (SELECT string_agg(p::text, ' ') FROM lockfence.presented() p);
		END IF;
		UPDATE batch SET note = 'stolen' WHERE id = own;
		RAISE 'a write without a token';
	EXCEPTION WHEN SQLSTATE 'LF002' THEN
		NULL;
	END
	$$;
	CREATE FUNCTION expect_own(own int) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		IF (SELECT array_agg(token) FROM lockfence.presented()) IS DISTINCT FROM
				ARRAY[(SELECT fence::bigint FROM batch WHERE id = own)]::lockfence.fence_token[] THEN
			RAISE 'not what batch % has presented: %', own, (SELECT string_agg(p::text, ' ') FROM lockfence.presented() p);
		END IF;
	END
	$$;
	UPDATE batch SET fence = 100 + id;
});
my $script = "$dir/pooled.sql";
append_to_file($script, q{
\set own :client_id + 1
SELECT expect_nothing(:own);
BEGIN;
SELECT lockfence.present('batch-' || :own::text, 100 + :own);
SELECT expect_own(:own);
UPDATE batch SET note = 'own' WHERE id = :own;
END;
SELECT expect_nothing(:own);
BEGIN;
SELECT lockfence.present(100 + :own);
SELECT expect_own(:own);
ROLLBACK;
});
foreach my $protocol ('simple', 'extended')
{
	command_like([ 'pgbench', '-h', $dir, '-p', $PORT, '-U', 'app', '-n', '-M', $protocol, '-c', 20, '-j', 2, '-t', 50,
		'-f', $script, 'many' ],
		qr{processed: 1000/1000}, "twenty clients on two connections, $protocol protocol");
}

# ---- the grant of a whole session, which would be that of whatever client has the connection next

my $GRANT = "options='-c lockfence.session_grant=200'";
my $direct = DBI->connect("dbi:Pg:host=@{[$node->host]};port=@{[$node->port]};dbname=postgres;$GRANT", 'app', '', { PrintError => 0 });
is(outcome($direct, $WRITE), 'ok', 'a session grant, without a pooler');
ok(!DBI->connect(dsn('transaction') . ";$GRANT", 'app', '', { PrintError => 0 }), 'PgBouncer refuses it');
like(DBI->errstr, qr/startup parameter.*options/, 'and says so');
stop_pooler();
start_pooler('ignore_startup_parameters = options');
foreach my $pool ('transaction', 'session', 'statement')
{
	my $client = DBI->connect(dsn($pool) . ";$GRANT", 'app', '', { PrintError => 0 }) or die DBI->errstr;

	is(value($client, 'SELECT count(*) FROM lockfence.presented()'), 0, "or drops it: $pool pooling presents nothing");
	is(outcome($client, $WRITE), 'LF002', 'and no write passes');
	isnt(outcome($client, "SET lockfence.session_grant = '10'"), 'ok', 'nor can the client set it') if $pool eq 'session';
	is(outcome($client, $WRITE), 'LF002', 'still');
	$client->disconnect;
}

stop_pooler();
done_testing();
