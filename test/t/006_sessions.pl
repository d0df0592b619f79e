# Sessions that many clients share, and settings: a token never passes to the next transaction, to another
# client or to another database, and no role gets past a fence by a setting that it may not change.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('sessions');

$node->safe_psql('postgres', q{
	CREATE ROLE app LOGIN;
	CREATE ROLE other LOGIN;
	CREATE ROLE worker;
	GRANT worker TO app;
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	GRANT ALL ON batch, job TO app, other, worker;
	GRANT EXECUTE ON FUNCTION lockfence.present(lockfence.fence_token),
		lockfence.present(text, lockfence.fence_token),
		lockfence.guarded_update(regclass, jsonb, jsonb, lockfence.fence_token) TO app;
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
	SELECT lockfence.attach('job', 'jobs');
	INSERT INTO batch VALUES (1, 'x', 10), (2, 'x', 10);
	BEGIN; SELECT lockfence.present(10); INSERT INTO job VALUES (1, 'x'); COMMIT;
});

my $WRITE = "UPDATE batch SET note = 'y' WHERE id = 1";
my $TABLE_WRITE = "UPDATE job SET note = 'y'";

# ---- one connection, one client after the other

my $s = session($node, 'postgres');

sub nothing_left
{
	my ($after) = @_;

	is(ask($s, 'SELECT count(*) FROM lockfence.presented()'), 0, "nothing is presented after $after");
	like(ask($s, $WRITE), qr/LF002/, "a write presents nothing after $after");
	like(ask($s, $TABLE_WRITE), qr/LF002/, "nor does one to a constant fence");
	return;
}

my %ends = (
	'COMMIT' => 'COMMIT',
	'ROLLBACK' => 'ROLLBACK',
	'an error' => 'SELECT 1/0; ROLLBACK',
	'a stale token' => "SELECT lockfence.present('batch-2', 1); COMMIT",
	'COMMIT AND CHAIN' => 'COMMIT AND CHAIN; COMMIT',
	'DISCARD ALL' => 'COMMIT; DISCARD ALL',
	'RESET SESSION AUTHORIZATION' => 'SET SESSION AUTHORIZATION app; COMMIT; RESET SESSION AUTHORIZATION');
foreach my $end (sort keys %ends)
{
	ask($s, "BEGIN; SELECT lockfence.present(10); SELECT lockfence.present('jobs', 10); $WRITE; $TABLE_WRITE");
	is(ask($s, 'SELECT count(*) FROM lockfence.presented()'), 3, "presented before $end");
	ask($s, $ends{$end});
	nothing_left($end);
}
ask($s, 'SELECT lockfence.present(10)');
nothing_left('present() alone in autocommit');
ask($s, "SELECT lockfence.guarded_update('batch', '{\"id\": 1}', '{\"note\": \"g\"}', 10)");
nothing_left('guarded_update()');

# chained: the next transaction is another one
ask($s, 'BEGIN; SELECT lockfence.present(10)');
ask($s, 'COMMIT AND CHAIN');
like(ask($s, $WRITE), qr/LF002/, 'COMMIT AND CHAIN chains no token');
ask($s, 'ROLLBACK');

ask($s, 'BEGIN; SAVEPOINT a; SELECT lockfence.present(10); ROLLBACK TO a');
like(ask($s, $WRITE), qr/LF002/, 'ROLLBACK TO takes back what was presented since');
ask($s, 'ROLLBACK');

# DISCARD ALL takes the kept plans too
is(ask($s, "SELECT lockfence.guarded_update('batch', '{\"id\": 1}', '{\"note\": \"h\"}', 10)"), 1,
	'guarded_update() works after DISCARD ALL');

# prepared statements are planned once, and decided every time
ask($s, "PREPARE w AS $WRITE");
ask($s, 'BEGIN; SELECT lockfence.present(10); EXECUTE w; EXECUTE w; COMMIT');
like(ask($s, 'EXECUTE w'), qr/LF002/, 'a prepared statement presents nothing');

# ---- procedures that commit

$node->safe_psql('postgres', q{
	CREATE PROCEDURE settle(again boolean) LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM lockfence.present(10);
		UPDATE batch SET note = 'first';
		COMMIT;
		IF again THEN
			PERFORM lockfence.present(10);
		END IF;
		UPDATE batch SET note = 'second';
		COMMIT;
	END
	$$;
});
like(ask($s, 'CALL settle(false)'), qr/LF002/, 'COMMIT in a procedure ends what was presented');
is(ask($s, 'SELECT DISTINCT note FROM batch'), 'first', 'what was committed stays');
is(ask($s, 'CALL settle(true)'), '', 'presented again, the procedure goes on');
is(ask($s, 'SELECT DISTINCT note FROM batch'), 'second', 'to its end');
is(ask($s, q{DO $$
	BEGIN
		PERFORM lockfence.present(10);
		BEGIN
			PERFORM lockfence.present('jobs', 20);
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero THEN
			NULL;
		END;
		UPDATE job SET note = 'z';
		COMMIT;
	END
	$$}), '', 'an exception block takes back what was presented in it, and no more');
like(ask($s, "SELECT token FROM lockfence.mark WHERE resource = 'jobs'"), qr/^10$/, 'with its advance');

# ---- parallel query

ask($s, 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET max_parallel_workers_per_gather = 2');
$node->safe_psql('postgres', 'CREATE TABLE many AS SELECT g AS id FROM generate_series(1, 10000) g; ANALYZE many');
ask($s, 'SET lockfence.bypass = off; SET lockfence.max_resource_locks = 10');
ask($s, 'BEGIN; SELECT lockfence.present(10)');
like(ask($s, 'EXPLAIN (COSTS OFF) SELECT count(lockfence.make_token(1, id)) FROM many'), qr/Gather/, 'a query is parallel');
is(ask($s, 'SELECT count(lockfence.make_token(1, id)) FROM many'), 10000, 'with the module loaded in its workers');
unlike(ask($s, "EXPLAIN (COSTS OFF) SELECT count(lockfence.is_current('batch-1', id)) FROM many"), qr/Gather/,
	'functions that look at marks keep a query serial');
is(ask($s, $WRITE), '', 'the token is still presented');
ask($s, 'COMMIT');
is(ask($s, 'SET lockfence.bypass = on; SELECT count(lockfence.make_token(1, id)) FROM many'), 10000,
	'workers take over settings of a superuser');
ask($s, 'RESET lockfence.bypass');
ask($s, 'SET lockfence.max_resource_locks = 0');
$s->{psql}->quit;

# ---- roles

sub app_sql
{
	my ($sql, $role) = @_;
	my (undef, $out, $err) = $node->psql('postgres', $sql,
		extra_params => [ '-v', 'VERBOSITY=verbose', '-U', $role // 'app' ]);

	return $out . $err;
}

like(app_sql('SELECT lockfence.present(10)', 'other'), qr/42501/, 'present() is not for everybody');
like(app_sql("SELECT lockfence.present('batch-1', 10)", 'other'), qr/42501/, 'nor is present() with a resource');
like(app_sql("SELECT lockfence.raise_mark('batch-1', 50, 'x')"), qr/42501/, 'administration is not for the application');
like(app_sql('UPDATE lockfence.mark SET token = 1'), qr/42501/, 'nor are the marks');
is(app_sql("SELECT lockfence.is_current('batch-1', 10)", 'other'), 't', 'is_current() is for everybody');
is(app_sql("UPDATE batch SET fence = 10 WHERE id = 1", 'other'), '', 'and so is a token in the column');
unlike(app_sql("BEGIN; SELECT lockfence.present(10); SET ROLE worker; $WRITE; $TABLE_WRITE; COMMIT"), qr/ERROR/,
	'SET ROLE within the transaction keeps what it presented');
like(app_sql('BEGIN; SET ROLE worker; SELECT lockfence.present(10)'), qr/42501/,
	'and gives the role no privilege to present');
like(app_sql("SET ROLE worker; $WRITE"), qr/LF002/, 'no role writes without a token');

# ---- settings that let writes pass

foreach my $setting ('bypass', 'preempt')
{
	like(app_sql("SELECT lockfence.is_current('x', 1); SET lockfence.$setting = on"), qr/42501/,
		"lockfence.$setting is the superuser's");
	like(app_sql("SELECT lockfence.is_current('x', 1); SELECT set_config('lockfence.$setting', 'on', true)"), qr/42501/,
		"lockfence.$setting: by set_config() as well");
	like(app_sql("SELECT lockfence.is_current('x', 1); BEGIN; SET LOCAL lockfence.$setting = on"), qr/42501/,
		"lockfence.$setting: by SET LOCAL as well");
	like(app_sql("ALTER ROLE app SET lockfence.$setting = on"), qr/42501/, "lockfence.$setting: for a role as well");
	like(app_sql("LOAD 'lockfence'"), qr/42501/, 'and an ordinary role cannot load the module to try');

	# Set before the module is loaded, where the server knows nothing of the setting yet.
	like(app_sql("SET lockfence.$setting = on; $WRITE; $TABLE_WRITE"), qr/LF002|42501/, "lockfence.$setting: set before the module is loaded, it does not count");
	local $ENV{PGOPTIONS} = "-c lockfence.$setting=on";
	like(app_sql($WRITE), qr/LF002|42501/, "lockfence.$setting: nor does it in the connection's options");
	like(app_sql("SELECT lockfence.is_current('x', 1); SHOW lockfence.$setting"), qr/^t\noff/,
		"lockfence.$setting: it is off");
}
my $bypassed = "SET lockfence.bypass = on; $WRITE; $TABLE_WRITE";
accepted_ok($node, 'postgres', $bypassed, 'a superuser bypasses');
like(app_sql("SET ROLE postgres; $bypassed"), qr/permission denied to set role|42501/, 'by no detour');
if (server_version($node) >= 15)
{
	$node->safe_psql('postgres', 'GRANT SET ON PARAMETER lockfence.bypass TO other');
	unlike(app_sql($bypassed, 'other'), qr/ERROR/, 'a role that was granted the setting bypasses');
	like(app_sql($bypassed), qr/42501|LF002/, 'and no other');
}
my $t = session($node, 'postgres');
ask($t, 'BEGIN; SET LOCAL lockfence.bypass = on');
is(ask($t, $WRITE), '', 'SET LOCAL bypasses');
ask($t, 'COMMIT');
like(ask($t, $WRITE), qr/LF002/, 'for its transaction only');
ask($t, 'SET lockfence.bypass = on; DISCARD ALL');
like(ask($t, $WRITE), qr/LF002/, 'and DISCARD ALL ends it');
like(ask($t, 'SET lockfence.bypas = on'), qr/ERROR/, 'a setting that is misspelt is an error') if server_version($node) >= 15;
$t->{psql}->quit;

# ---- two databases, one name

$node->safe_psql('postgres', 'CREATE DATABASE two');
$node->safe_psql('two', q{CREATE EXTENSION lockfence; SELECT lockfence.present('shared', 10)});
$node->safe_psql('postgres', q{SELECT lockfence.present('shared', 10)});
my $one = session($node, 'postgres');
my $two = session($node, 'two');
ask($one, 'BEGIN');
is(ask($one, "SELECT lockfence.present('shared', 10)"), 10, 'held in one database');
is(ask($two, "SET lock_timeout = '10s'; SELECT lockfence.present('shared', 20)"), 10,
	'an advance in another one does not wait for it');
is(ask($one, "SELECT lockfence.is_current('shared', 10)"), 't', 'and leaves its mark alone');
ask($two, 'BEGIN');
ask($two, "SELECT lockfence.present('shared', 30)");
is(ask($one, "COMMIT; SET lock_timeout = '10s'; SELECT lockfence.present('shared', 11)"), 10,
	'an uncommitted advance there is not waited for here');
ask($two, 'COMMIT');
mark_is($node, 'postgres', 'shared', 11, 'each database has its own mark');
mark_is($node, 'two', 'shared', 30, 'and that is the other one');
$_->{psql}->quit foreach ($one, $two);

done_testing();
