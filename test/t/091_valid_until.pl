# A token that counts until an instant: what the commit refuses once that has passed, and how it is renewed meanwhile.  All
# transactions are prepared first, and wait for the same instant.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = fenced_node('until', "shared_preload_libraries = 'lockfence'\nlockfence.unchecked_token = ignore");
$node->safe_psql('postgres', q{
	CREATE EXTENSION lockfence_lease;
	CREATE TABLE item (id text PRIMARY KEY, note text);
	CREATE TABLE trial (id text PRIMARY KEY, note text);
	CREATE TABLE by_row (id text PRIMARY KEY, note text);
	CREATE TABLE line (n int, batch int);
	CREATE TABLE free (note text);
	CREATE TABLE by_name (id text PRIMARY KEY, note text);
	SELECT lockfence.attach('item', 'item-{id}', 'token');
	SELECT lockfence.attach('trial', 'trial-{id}', 'token', enforcement => 'advisory');
	SELECT lockfence.attach('by_row');
	SELECT lockfence.attach('line', 'line-{batch}');
	SELECT lockfence.attach('by_name', accept => 'named');
	SELECT lockfence.fence_ddl('ddl');
	SELECT lockfence.present('ddl', 10);
});

# Long enough for all that is to be begun before it, on this machine.
my $began = time;
session($node, 'postgres')->{psql}->quit for 1 .. 3;
my $seconds = 15 + 15 * (time - $began);
my $until = $node->safe_psql('postgres', "SELECT to_char((clock_timestamp() + '$seconds seconds') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')");
my %sessions;

# A transaction that is left open.
sub begin
{
	my ($name, @statements) = @_;

	$sessions{$name} = session($node, 'postgres');
	ask($sessions{$name}, 'BEGIN');
	is(ask($sessions{$name}, "$_ \\g (tuples_only format=unaligned)") =~ s/^\n*|\n*$//gr =~ /ERROR/, '', "$name: $_") foreach @statements;
	return;
}

sub present { return sprintf("SELECT lockfence.present('%s', 10, '%s')", shift, shift // $until); }
sub write_item { return sprintf("INSERT INTO item VALUES ('%s', 'new')", shift); }
sub granted_session
{
	local $ENV{PGOPTIONS} = '-c lockfence.session_grant=' . shift;
	return begin(@_);
}

# How a session's statement ends: '' or the SQLSTATE.
sub ends
{
	my ($name, $statement) = @_;

	return ask($sessions{$name}, $statement) =~ /ERROR:  (\w{5})/ ? $1 : '';
}

begin('commit', present('item-commit'), write_item('commit'));
begin('prepare', present('item-prepare'), write_item('prepare'));
begin('write', present('item-write'));
begin('no write', present('item-none'), "INSERT INTO free VALUES ('not fenced')");
begin('run of rows', present('line-1'), 'INSERT INTO line VALUES (0, 1)');
begin('advisory', present('trial-1'), "INSERT INTO trial VALUES ('1', 'new')");
begin('undone', present('item-undone'), 'SAVEPOINT a', write_item('undone'), 'ROLLBACK TO a', "INSERT INTO free VALUES ('undone')");
begin('released', present('item-released'), 'SAVEPOINT a', write_item('released'), 'RELEASE a');
begin('renewed', present('item-renewed'), write_item('renewed'), present('item-renewed', 'infinity'));
begin('not renewed', present('item-lost'), write_item('lost'), 'SAVEPOINT a', present('item-lost', 'infinity'), 'ROLLBACK TO a');
begin('shortened', present('item-shortened', 'infinity'), write_item('shortened'), present('item-shortened'));
begin('taken over', present('item-taken'), write_item('taken'), "SELECT lockfence.present('item-taken', 11)");
begin('column', present('item-column'), "INSERT INTO item VALUES ('column', 'new', 10)");
begin('two', present('item-one', 'infinity'), present('item-two'), write_item('one'), write_item('two'));
granted_session("10\@$until", 'session', write_item('session'));
granted_session("item-by-name=10\@$until", 'session, by name', write_item('by-name'));
granted_session("10\@$until", 'session, row', "INSERT INTO by_row VALUES ('row', 'new')");
granted_session("10\@$until", 'session, two row fences', "INSERT INTO by_row VALUES ('two', 'new')",
	"INSERT INTO by_name VALUES ('two', 'new', 50)");
begin('definition', present('ddl'));
begin('definition, commit', present('ddl'), 'CREATE TABLE by_commit (id int)');
granted_session("ddl=10\@$until", 'session, definition', 'CREATE TABLE by_session (id int)');
granted_session("10\@$until\\\nddl=10", 'session, definition without end', 'CREATE TABLE without_end (id int)');
granted_session("10\@$until", 'session, undone row', 'SAVEPOINT a', "INSERT INTO by_row VALUES ('undone', 'new')", 'ROLLBACK TO a');
granted_session("10\@$until", 'session, no write', "INSERT INTO free VALUES ('not fenced')");

# Leases: their own end, which another connection may put off.
$node->safe_psql('postgres', "SELECT lockfence.acquire('item-$_', 'worker', '$seconds seconds')")
  foreach ('ended', 'kept', 'as', 'off', 'own');
my $LIMIT = 'SET LOCAL lockfence.limit_leases = on';
my $LEASED = "SELECT lockfence.present('item-%s', 1)";
begin('lease', $LIMIT, sprintf($LEASED, 'ended'), write_item('ended'));
begin('lease by its owner', $LIMIT, "SELECT lockfence.present_as('item-as', 'worker')", write_item('as'));
begin('lease renewed by another connection', $LIMIT, sprintf($LEASED, 'kept'), write_item('kept'));
begin('lease renewed in the transaction', $LIMIT, sprintf($LEASED, 'own'), write_item('own'), "SELECT lockfence.renew('item-own', 1, '1 hour')");
begin('lease, by default', sprintf($LEASED, 'off'), write_item('off'));
begin('lease acquired', $LIMIT, "SELECT lockfence.acquire('item-acquired', 'worker', '100 milliseconds')", 'SELECT pg_sleep(0.2)');
begin('no lease', $LIMIT, "SELECT lockfence.present('item-no-lease', 1)", write_item('no-lease'));
$node->safe_psql('postgres', "SELECT lockfence.renew('item-kept', 1, '1 hour')");

cmp_ok($node->safe_psql('postgres', "SELECT clock_timestamp() < '$until'"), 'eq', 't', 'all of that was in time');
is(ends('run of rows', "INSERT INTO line SELECT n, 1 FROM generate_series(1, 3) n
	WHERE n < 3 OR pg_sleep(extract(epoch FROM '$until'::timestamptz - clock_timestamp()) + 0.1)::text = ''"),
	'LF011', 'a row after it, in a statement that began before');
$node->poll_query_until('postgres', "SELECT bool_and(expires_at < clock_timestamp()) FROM lockfence.lease WHERE resource IN ('item-ended', 'item-as', 'item-off')");

is(ends('write', write_item('write')), 'LF011', 'a write after it');
is(ends('definition', 'CREATE TABLE late (id int)'), 'LF011', 'a definition after it');
is(ends($_, 'COMMIT'), 'LF011', "refused: $_") foreach ('commit', 'released', 'not renewed', 'shortened', 'column', 'two',
	'session', 'session, by name', 'session, row', 'session, two row fences', 'definition, commit', 'session, definition', 'lease', 'lease by its owner');
is(ends('prepare', "PREPARE TRANSACTION 'late'"), 'LF011', 'refused: PREPARE TRANSACTION');
is(ends('advisory', "UPDATE trial SET note = 'late'"), '', 'an advisory fence lets a write after it pass');
is(ends('lease renewed by another connection', "UPDATE item SET note = 'late' WHERE id = 'kept'"), '', 'a renewed lease goes on');
is(ends('lease acquired', write_item('acquired')), 'LF011', 'a lease that has ended in the transaction that acquired it');
is(ends($_, 'COMMIT'), '', "committed: $_") foreach ('no write', 'advisory', 'undone', 'renewed', 'taken over', 'session, undone row',
	'session, no write', 'session, definition without end', 'lease renewed by another connection', 'lease renewed in the transaction', 'lease, by default', 'no lease');
query_is($node, 'postgres', 'SELECT id FROM item ORDER BY id COLLATE "C"', join("\n", 'kept', 'no-lease', 'off', 'own', 'renewed', 'taken'),
	'what was refused is rolled back');
query_is($node, 'postgres', 'SELECT count(*) FROM by_row', 0, 'in row fences, too');
mark_is($node, 'postgres', 'item-commit', '', 'with its mark');
query_is($node, 'postgres', 'SELECT count(*) FROM pg_prepared_xacts', 0, 'nothing is prepared');

# What is told of it: the counters, the ring, the log.
query_is($node, 'postgres', 'SELECT sum(expired), sum(advisory) FROM lockfence.stats', '19|1', 'counted');
query_is($node, 'postgres', "SELECT DISTINCT resource, token FROM lockfence.refusals WHERE code = 'LF011' AND resource LIKE '%-commit'",
	'item-commit|10', 'and seen');

# The session of a refused transaction goes on without it.
is(ask($sessions{commit}, 'SELECT count(*) FROM lockfence.presented()') =~ /\b0\b/, 1, 'nothing is left of the end');
is(ends('commit', "BEGIN; SELECT lockfence.present('item-commit', 10); INSERT INTO item VALUES ('commit', 'again'); COMMIT"), '',
	'and the token can be presented anew');
$_->{psql}->quit foreach values %sessions;

done_testing();
