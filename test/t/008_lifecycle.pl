# The extension dropped and created again under sessions that know it; moved; and created where another
# role was first.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('lifecycle');

my $ATTACH = q{
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
	SELECT lockfence.attach('job', 'jobs');
	SELECT lockfence.attach('doc')};

$node->safe_psql('postgres', qq{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	INSERT INTO batch VALUES (1), (2);
	INSERT INTO job VALUES (1);
	INSERT INTO doc VALUES (1);
	$ATTACH;
});

my $s = session($node, 'postgres');
my $other = session($node, 'postgres');
ask($_, "PREPARE w AS UPDATE job SET note = 'prepared'") foreach ($s, $other);

# Every kind of write, in a session that has everything cached; the marks are at the token afterwards.
sub fence_works
{
	my ($session, $token, $when) = @_;
	my $stale = $token - 1;

	is(ask($session, "SELECT lockfence.guarded_update('batch', '{\"id\": 1}', '{\"note\": \"g\"}', $token)"), 1,
		"$when: guarded_update()");
	is(ask($session, "UPDATE batch SET fence = $token WHERE id = 2"), '', "$when: named fence accepts");
	is(ask($session, "UPDATE doc SET fence = $token"), '', "$when: row fence accepts");
	is(ask($session, "BEGIN; SELECT lockfence.present($token); EXECUTE w; COMMIT"), '', "$when: constant fence accepts");
	like(ask($session, "UPDATE batch SET fence = $stale WHERE id = 2"), qr/LF001/, "$when: named fence refuses");
	like(ask($session, "UPDATE doc SET fence = $stale"), qr/LF001/, "$when: row fence refuses");
	like(ask($session, "BEGIN; SELECT lockfence.present($stale); EXECUTE w"), qr/LF001/, "$when: constant fence refuses");
	ask($session, 'ROLLBACK');
	like(ask($session, 'EXECUTE w'), qr/LF002/, "$when: and misses a token");
	is(ask($session, "SELECT lockfence.is_current('jobs', $token), lockfence.is_current('jobs', $stale)"), 't|f',
		"$when: is_current()");
	return;
}

fence_works($s, 10, 'first');
fence_works($other, 11, 'first, other session');
ask($s, "SELECT lockfence.set_epoch(0, 'test')");
like(ask($other, "SELECT lockfence.present('jobs', lockfence.make_token(1, 1))"), qr/LF004/, 'the epoch is known');

# ---- dropped and created again

like(ask($s, 'DROP EXTENSION lockfence'), qr/ERROR:  2BP01/, 'fences keep the extension from being dropped');
like(ask($s, 'DROP EXTENSION lockfence CASCADE'), qr/NOTICE/, 'CASCADE drops it, and says so');
is(ask($_, "UPDATE job SET note = 'free'"), '', 'then nothing is fenced') foreach ($s, $other);
is(ask($_, 'EXECUTE w'), '', 'nor by a statement planned before') foreach ($s, $other);
is(ask($s, 'SELECT * FROM doc'), '1|', 'no row is gone, but the token columns are');
is(ask($s, 'CREATE EXTENSION lockfence'), '', 'the same session creates it again');
unlike(ask($s, $ATTACH), qr/ERROR/, 'and attaches');
mark_is($node, 'postgres', 'jobs', '', 'marks are new');
is(ask($other, "SELECT lockfence.present('old', lockfence.make_token(1, 1)), lockfence.present('jobs', 1)"), '|',
	'and so is the epoch, in a session that knew the old one');
fence_works($s, 20, 'again');
fence_works($other, 21, 'again, other session');

# in one transaction, and rolled back
ask($s, 'BEGIN; DROP EXTENSION lockfence CASCADE; CREATE EXTENSION lockfence');
unlike(ask($s, $ATTACH), qr/ERROR/, 'attached in the transaction that created the extension');
fence_in_transaction($s);
ask($s, 'ROLLBACK');
mark_is($node, 'postgres', 'jobs', 21, 'rolled back, the marks are the old ones');
fence_works($s, 30, 'after the rollback');
fence_works($other, 31, 'after the rollback, other session');

sub fence_in_transaction
{
	my ($session) = @_;

	is(ask($session, "SELECT lockfence.present('jobs', 1)"), '', 'marks are new in that transaction');
	is(ask($session, 'EXECUTE w'), '', 'the fence accepts in that transaction');
	return;
}

# dropped in one session while another one is in a transaction that presented
ask($other, "BEGIN; SELECT lockfence.present('jobs', 31)");
start_blocked($s, 'DROP EXTENSION lockfence CASCADE');
is(ask($other, 'EXECUTE w; COMMIT'), '', 'a transaction that presented goes on to its end');
like(finish_blocked($s), qr/NOTICE/, 'DROP EXTENSION waits for it');
is(ask($s, 'CREATE EXTENSION lockfence'), '', 'created again');
unlike(ask($s, $ATTACH), qr/ERROR/, 'and attached');
fence_works($other, 40, 'once more, other session');
fence_works($s, 41, 'once more');

# detached and attached as something else
ask($s, "SELECT lockfence.detach('batch')");
ask($s, "SELECT lockfence.attach('batch', 'all batches', 'fence')");
is(ask($other, 'UPDATE batch SET fence = 50 WHERE id = 2'), '', 'another fence is seen by every session');
mark_is($node, 'postgres', 'all batches', 50, 'with its own resource');

# a column that the fence needs is renamed under a session that has it resolved
ask($s, 'ALTER TABLE batch RENAME COLUMN fence TO renamed');
like(ask($other, "BEGIN; SELECT lockfence.present(50); UPDATE batch SET note = 'y'"), qr/42703/,
	'a renamed token column is missed by every session');
ask($other, 'ROLLBACK');
ask($s, 'ALTER TABLE batch RENAME COLUMN renamed TO fence');

# ---- moved

like(ask($s, 'ALTER EXTENSION lockfence SET SCHEMA public'), qr/ERROR:  0A000/, 'the extension does not move');
ask($s, 'ALTER TABLE lockfence.mark SET SCHEMA public');
like(ask($other, 'UPDATE batch SET fence = 60 WHERE id = 2'), qr/42P01/, 'with its marks moved away, a fence rejects all writes');
ask($s, 'ALTER TABLE public.mark SET SCHEMA lockfence');
is(ask($other, 'UPDATE batch SET fence = 60 WHERE id = 2'), '', 'with its marks back, it decides again');
ask($s, 'ALTER SCHEMA lockfence RENAME TO elsewhere');
like(ask($other, 'UPDATE batch SET fence = 1 WHERE id = 2'), qr/LF001|42P01/, 'with the schema renamed, a fence accepts nothing stale');
refused_ok($node, 'postgres', 'UPDATE batch SET fence = 60 WHERE id = 2', '42P01', 'and where it cannot decide it rejects all writes');
ask($s, 'ALTER SCHEMA elsewhere RENAME TO lockfence');
is(ask($other, 'UPDATE batch SET fence = 60 WHERE id = 2'), '', 'with its name back, it decides again');

# ---- another role was there first

$node->safe_psql('postgres', 'CREATE ROLE mallory LOGIN; CREATE DATABASE hostile');
$node->safe_psql('hostile', q{
	GRANT CREATE ON DATABASE hostile TO mallory;
	SET SESSION AUTHORIZATION mallory;
	CREATE SCHEMA lockfence;
	CREATE TABLE lockfence.planted (id int);
});
refused_ok($node, 'hostile', 'CREATE EXTENSION lockfence', 'P0001', "the extension is not created in another role's schema",
	qr/schema "lockfence" belongs to another role/);
query_is($node, 'hostile', "SELECT count(*) FROM pg_extension WHERE extname = 'lockfence'", 0, 'nothing of it is there');
$node->safe_psql('hostile', 'DROP SCHEMA lockfence CASCADE; CREATE SCHEMA lockfence');
accepted_ok($node, 'hostile', 'CREATE EXTENSION lockfence', "but in one of the creator's own");
query_is($node, 'hostile', q{SELECT has_schema_privilege('mallory', 'lockfence', 'CREATE')}, 'f',
	'where no other role creates anything');
$node->safe_psql('postgres', $_) foreach ('CREATE DATABASE ordinary', 'GRANT CREATE ON DATABASE ordinary TO mallory');
(undef, undef, my $err) = $node->psql('ordinary', 'CREATE EXTENSION lockfence', extra_params => [ '-U', 'mallory' ]);
like($err, qr/permission denied to create extension/, 'an ordinary role cannot create it');
$_->{psql}->quit foreach ($s, $other);

# Planted in the search path: a fence looks for its marks nowhere else.
$node->safe_psql('hostile', q{
	CREATE TABLE batch (id int, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
	INSERT INTO batch VALUES (1, 'x', 10);
	GRANT ALL ON batch TO mallory;
});
(undef, undef, $err) = $node->psql('hostile', q{
	CREATE TEMP TABLE mark (token bigint, advanced_at timestamptz, resource text);
	CREATE TEMP TABLE state (name text, value bigint);
	INSERT INTO mark VALUES (1, now(), 'batch-1');
	SET search_path = pg_temp, lockfence;
	UPDATE public.batch SET fence = 9;
}, extra_params => [ '-U', 'mallory', '-v', 'VERBOSITY=verbose' ]);
like($err, qr/LF001/, 'marks in a temporary table deceive no fence');

done_testing();
