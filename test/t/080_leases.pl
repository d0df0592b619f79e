# Leases under load, by their history; waiters; what those who listen hear; a dump; a clock that jumps.
use strict;
use warnings;

use File::Spec;
use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($CLIENTS, $LEASES, $RESOURCES) = (8, 10000, 10);

my $node = fenced_node('leases', 'max_connections = 30');
$node->safe_psql('postgres', 'CREATE EXTENSION lockfence_lease');

# ---- 8 clients, 10,000 leases ---------------------------------------------------------------------

# A job holds a lease, works under it, renews and releases it.  One of twenty stops past its end, and then goes on as if
# nothing had been; its stale write is accepted or refused.
$node->safe_psql('postgres', q{
	CREATE TABLE work (n bigserial, resource text, client int);
	SELECT lockfence.attach('work', 'load:{resource}', token_column => 'token');
	CREATE TABLE history (resource text, client int, token bigint, since timestamptz, until timestamptz, renewed timestamptz, released boolean, late text);

	CREATE PROCEDURE write(client int, resource text, token bigint) LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM lockfence.present('load:' || resource, token);
		INSERT INTO work (resource, client, token) VALUES (resource, client, token);
	END
	$$;
	CREATE FUNCTION try_late(client int, resource text, token bigint) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		CALL write(client, resource, token);
		RETURN 'accepted';
	EXCEPTION WHEN OTHERS THEN
		RETURN sqlstate;
	END
	$$;
	CREATE PROCEDURE job(client int, resource text, stops boolean) LANGUAGE plpgsql AS $$
	DECLARE
		h history;
	BEGIN
		SELECT a.token, a.expires_at INTO h.token, h.until
		FROM lockfence.acquire('load:' || resource, 'client ' || client, CASE WHEN stops THEN interval '100 ms' ELSE '10 min' END, '10 min') a;
		COMMIT;
		h.since := clock_timestamp();
		h.resource := resource;
		h.client := client;
		IF stops THEN
			PERFORM pg_sleep(0.15);
			h.late := try_late(client, resource, h.token);
			COMMIT;
		ELSE
			CALL write(client, resource, h.token);
			COMMIT;
			h.renewed := lockfence.renew('load:' || resource, h.token, '10 min');
			COMMIT;
			CALL write(client, resource, h.token);
			COMMIT;
			h.until := clock_timestamp();
			h.released := lockfence.release('load:' || resource, h.token);
			COMMIT;
		END IF;
		INSERT INTO history SELECT h.*;
	END
	$$;
});
append_to_file($node->basedir . '/job.sql',
	"\\set resource random(1, $RESOURCES)\n\\set dice random(1, 20)\nCALL job(:client_id, :resource::text, :dice = 1);\n");
command_ok([ 'pgbench', '-n', '-c', $CLIENTS, '-j', 2, '-t', $LEASES / $CLIENTS, '-f', $node->basedir . '/job.sql', '-h', $node->host, '-p', $node->port, 'postgres' ],
	"$CLIENTS clients end without an error, so without a deadlock");

query_is($node, 'postgres', 'SELECT count(*), count(token) FROM history', "$LEASES|$LEASES", 'each of them got its leases');
query_is($node, 'postgres', 'SELECT count(*) FROM (SELECT FROM history GROUP BY resource, token HAVING count(*) > 1) AS t', '0', 'no token was given twice');
query_is($node, 'postgres', q{
	SELECT count(*) FROM history a JOIN history b ON a.resource = b.resource AND a.token < b.token AND a.until > b.since},
	'0', 'no lease had two live owners at a time, and tokens are in the order of the leases');
query_is($node, 'postgres', q{
	SELECT count(*) FROM (SELECT token < lag(token) OVER (PARTITION BY resource ORDER BY n) FROM work) AS w (falls) WHERE falls},
	'0', 'the tokens of what was written never go down');
query_is($node, 'postgres', q{SELECT bool_and(released AND renewed > until) FROM history WHERE late IS NULL}, 't', 'who did not stop could renew and release');
query_is($node, 'postgres', q{SELECT count(*) > 100, bool_and(late IN ('accepted', 'LF001')), bool_or(late = 'LF001') FROM history WHERE late IS NOT NULL}, 't|t|t',
	'who stopped was refused, if the lease had gone over');
query_is($node, 'postgres', q{
	SELECT count(*) FROM history a WHERE late = 'accepted' AND EXISTS (
		SELECT FROM work x JOIN work y ON y.resource = x.resource AND y.token > x.token AND y.n < x.n
		WHERE x.resource = a.resource AND x.token = a.token)}, '0', 'nothing was written late that was accepted after the next holder');
query_is($node, 'postgres', q{SELECT max(token) = count(*) FROM history GROUP BY resource HAVING max(token) <> count(*)}, '', 'and no token was left out');

# ---- renewals -------------------------------------------------------------------------------------

# An hour of 50 leases that are renewed every 10 seconds, without vacuum: each renewal is a heap-only update, which
# finds its place by pruning.
$node->safe_psql('postgres', q{
	CREATE PROCEDURE renew_all(times int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. times LOOP
			FOR r IN 1 .. 50 LOOP
				PERFORM lockfence.renew('renewed:' || r, 1, '30 s');
				COMMIT;
			END LOOP;
		END LOOP;
	END
	$$;
	SELECT count(token) FROM generate_series(1, 50) r, lockfence.acquire('renewed:' || r, 'holder', '10 min');
	CALL renew_all(10);
});
my $SIZES = q{SELECT pg_relation_size('lockfence.lease') || ' ' || pg_relation_size('lockfence.lease_pkey')};
my $sizes = $node->safe_psql('postgres', $SIZES);
note $sizes;
$node->safe_psql('postgres', 'CALL renew_all(360)');
query_is($node, 'postgres', $SIZES, $sizes, 'an hour of renewals makes neither the table nor its index grow');

# ---- waiting --------------------------------------------------------------------------------------

my $holder = session($node, 'postgres');
my $waiter = session($node, 'postgres');
my @took;
for my $round (1 .. 10)
{
	my $token = ask($holder, "SELECT token FROM lockfence.acquire('wait', 'holder', '1 hour')");
	$waiter->{psql}->query_until(qr/^started$/m, "\\echo started\nSELECT token FROM lockfence.acquire('wait', 'waiter', '1 hour', '10 min');\n");
	$node->poll_query_until('postgres', "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $waiter->{pid}") or die 'does not wait';
	is(ask($holder, "SELECT count(*) FROM pg_locks WHERE pid = $waiter->{pid} AND (locktype IN ('advisory', 'tuple', 'transactionid') OR NOT granted)"), '0',
		'a waiter holds nothing, and queues for nothing') if $round == 1;
	my $released = ask($holder, "SELECT extract(epoch FROM clock_timestamp()) FROM lockfence.release('wait', $token)");
	my $next = finish_blocked($waiter);
	is($next, $token + 1, 'it gets what is released') if $round == 1;
	push @took, ask($holder, "SELECT 1000 * (extract(epoch FROM granted_at) - $released) FROM lockfence.leases WHERE resource = 'wait'");
	ask($waiter, "SELECT lockfence.release('wait', $next)");
}
my ($fastest) = sort { $a <=> $b } @took;
note join ' ', map { sprintf '%.0f', $_ } @took;
cmp_ok($fastest, '<', 100, '... within 100 ms, as far as the machine lets it');
is(ask($waiter, "SELECT count(*) FROM lockfence.acquire('wait', 'first', '1 hour')"), '1', 'free again');
is(ask($waiter, "SELECT count(*) FROM lockfence.acquire('wait', 'second', '1 hour', '50 ms')"), '0', 'and taken: no row after the wait');
like(ask($waiter, "SET statement_timeout = '100 ms'; SELECT count(*) FROM lockfence.acquire('wait', 'second', '1 hour', '10 min')"), qr/57014/, 'a wait can be canceled');
ask($waiter, 'RESET statement_timeout');

# ---- being told -----------------------------------------------------------------------------------

ask($holder, 'LISTEN lockfence_lease');
ask($waiter, "SELECT token FROM lockfence.acquire('told', 'first', '100 ms')");
unlike(ask($holder, 'SELECT 1'), qr/notification/, 'nothing is told unasked');
ask($waiter, 'SET lockfence.notify_leases = on');
ask($waiter, "SELECT token FROM lockfence.acquire('told', 'second', '1 hour', '10 min')");
like(ask($holder, 'SELECT 1'), qr/"lockfence_lease" with payload "told"/, 'a takeover is told, by the name of the resource');
ask($waiter, "SELECT lockfence.release('told', 1)");
unlike(ask($holder, 'SELECT 1'), qr/notification/, 'a release of nothing is not');
ask($waiter, "SELECT lockfence.release('told', 2)");
like(ask($holder, 'SELECT 1'), qr/"lockfence_lease" with payload "told"/, 'a release is told');
ask($waiter, "SELECT token FROM lockfence.acquire('told', 'third', '1 hour')");
unlike(ask($holder, 'SELECT 1'), qr/notification/, 'a lease that ends none is not');

# ---- preemption -----------------------------------------------------------------------------------

# A holder that is idle in its transaction is ended by the takeover; by the rights of the role that acquires, not by
# those of the extension's owner.
$node->safe_psql('postgres', q{
	CREATE ROLE worker LOGIN;
	GRANT EXECUTE ON FUNCTION lockfence.acquire(text, text, interval, interval) TO worker;
	SELECT lockfence.acquire('idle', 'old', '100 ms');
});
ask($holder, 'BEGIN');
ask($holder, "SELECT lockfence.present('idle', 1)");
ask($waiter, 'SET lockfence.preempt = on');
ask($waiter, 'SET SESSION AUTHORIZATION worker');
like(ask($waiter, "SELECT count(*) FROM lockfence.acquire('idle', 'new', '1 hour', '200 ms')"), qr/^0.*cannot end process/s,
	'a role that may not end the holder waits for it, and has no lease then');
is(ask($holder, 'SELECT 1'), '1', '... and the holder goes on');
ask($waiter, 'RESET SESSION AUTHORIZATION');
is(ask($waiter, "SELECT count(*) FROM lockfence.acquire('idle', 'new', '1 hour', '10 min')"), '1', 'one that may ends it');
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $holder->{pid}") or die 'the holder is not ended';
$waiter->{psql}->quit;

# ---- a dump ---------------------------------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE restored');
my $dump = $node->basedir . '/dump.sql';
command_ok([ 'pg_dump', '-f', $dump, '-h', $node->host, '-p', $node->port, 'postgres' ], 'dumped');
$node->safe_psql('restored', "\\i $dump");
query_is($node, 'restored', "SELECT owner, token, alive FROM lockfence.leases WHERE resource = 'idle'", 'new|2|t', 'a dump has the leases');
query_is($node, 'restored', "SELECT token FROM lockfence.acquire('told', 'fourth', '1 hour')", '', 'a lease that is alive is alive there');
query_is($node, 'restored', "SELECT lockfence.release('told', 3); SELECT token FROM lockfence.acquire('told', 'fourth', '1 hour')", "t\n4", 'and tokens go on');

# ---- a clock that jumps ---------------------------------------------------------------------------

# The clock of the server is what a file says.
my ($faketime) = glob '/usr/lib/*/faketime/libfaketime.so.1';
my $clock = File::Spec->rel2abs($node->basedir . '/clock');

sub set_clock
{
	my ($offset) = @_;
	append_to_file("$clock.new", "$offset\n");
	rename "$clock.new", $clock or die "$clock: $!";
	return;
}

die 'no libfaketime' unless defined $faketime;
$node->stop;
set_clock('+0');
{
	local $ENV{LD_PRELOAD} = $faketime;
	local $ENV{FAKETIME_TIMESTAMP_FILE} = $clock;
	local $ENV{FAKETIME_NO_CACHE} = 1;
	local $ENV{FAKETIME_DONT_FAKE_MONOTONIC} = 1;
	$node->start;
}
query_is($node, 'postgres', "SELECT token FROM lockfence.acquire('clock', 'one', '1 hour')", '1', 'a lease by the clock');
set_clock('+7200');
query_is($node, 'postgres', "SELECT alive FROM lockfence.leases WHERE resource = 'clock'", 'f', 'the clock jumps ahead: the lease is over');
query_is($node, 'postgres', "SELECT token FROM lockfence.acquire('clock', 'two', '1 hour')", '2', '... and taken over');
refused_ok($node, 'postgres', "SELECT lockfence.present('clock', 1)", 'LF001', '... though its holder had time left; it is refused');
refused_ok($node, 'postgres', "SELECT lockfence.renew('clock', 1, '1 hour')", 'LF001', '... and cannot renew');
set_clock('-86400');
query_is($node, 'postgres', "SELECT token FROM lockfence.acquire('clock', 'three', '1 hour', '100 ms')", '', 'the clock jumps back: the lease lives longer, and a wait ends all the same');
refused_ok($node, 'postgres', "SELECT lockfence.present('clock', 1)", 'LF001', '... and who was out stays out');
query_is($node, 'postgres', "SELECT lockfence.renew('clock', 2, '1 hour') < (SELECT granted_at FROM lockfence.leases WHERE resource = 'clock')", 't',
	'its holder renews it by the clock as it is');
query_is($node, 'postgres', "SELECT lockfence.release('clock', 2); SELECT token FROM lockfence.acquire('clock', 'three', '1 hour')", "t\n3", 'and the next token is the next, whatever the time');
$node->stop;

done_testing();
