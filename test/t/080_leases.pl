# Leases under load, by their recorded history; waiters; what those who listen hear; a dump; a clock that jumps.
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
# nothing had been; its stale write is accepted or refused.  Each step is put on record once it is committed.
$node->safe_psql('postgres', q{
	CREATE TABLE work (resource text, client int);
	SELECT lockfence.attach('work', '{resource}');
	CREATE TABLE operation (resource text, client int, what text, token bigint, code text, ttl interval,
		began timestamptz, ended timestamptz DEFAULT clock_timestamp(), id bigserial);

	CREATE PROCEDURE done(resource text, client int, what text, token bigint, code text, ttl interval, began timestamptz) LANGUAGE plpgsql AS $$
	BEGIN
		COMMIT;
		INSERT INTO operation VALUES (resource, client, what, token, code, ttl, began);
		COMMIT;
	END
	$$;
	CREATE FUNCTION try_write(resource text, client int, token bigint) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM lockfence.present(resource, token);
		INSERT INTO work VALUES (resource, client);
		RETURN '00000';
	EXCEPTION WHEN OTHERS THEN
		RETURN sqlstate;
	END
	$$;
	CREATE PROCEDURE job(resource text, client int, stops boolean) LANGUAGE plpgsql AS $$
	DECLARE
		ttl CONSTANT interval := CASE WHEN stops THEN '100 ms' ELSE '10 min' END;
		began timestamptz := clock_timestamp();
		held CONSTANT bigint := (SELECT a.token FROM lockfence.acquire(resource, 'client ' || client, ttl, '10 min') a);
		step text;
		code text;
	BEGIN
		CALL done(resource, client, 'acquire', held, '00000', ttl, began);
		FOREACH step IN ARRAY CASE WHEN stops THEN '{stop,write}'::text[] ELSE '{write,renew,write,release}' END LOOP
			began := clock_timestamp();
			code := CASE step
				WHEN 'stop' THEN pg_sleep(0.15)::text
				WHEN 'write' THEN try_write(resource, client, held)
				WHEN 'renew' THEN CASE WHEN lockfence.renew(resource, held, ttl) > began THEN '00000' END
				WHEN 'release' THEN CASE WHEN lockfence.release(resource, held) THEN '00000' END
			END;
			CALL done(resource, client, step, held, code, ttl, began);
		END LOOP;
	END
	$$;
});
append_to_file($node->basedir . '/job.sql',
	"\\set resource random(1, $RESOURCES)\n\\set dice random(1, 20)\nCALL job('load:' || :resource, :client_id, :dice = 1);\n");
command_ok([ 'pgbench', '-n', '-c', $CLIENTS, '-j', 2, '-t', $LEASES / $CLIENTS, '-f', $node->basedir . '/job.sql', '-h', $node->host, '-p', $node->port, 'postgres' ],
	"$CLIENTS clients end without an error, so without a deadlock");

query_is($node, 'postgres', q{SELECT count(token) FROM operation WHERE what = 'acquire'}, $LEASES, 'each of them got its leases');
query_is($node, 'postgres', q{SELECT count(*) FROM operation WHERE what IN ('acquire', 'renew', 'release') AND code IS DISTINCT FROM '00000'}, '0',
	'who did not stop could renew and release');
query_is($node, 'postgres', q{SELECT string_agg(DISTINCT code, ' ' ORDER BY code) FROM operation WHERE what = 'write'}, '00000 LF001',
	'who stopped was refused, if the lease had gone over');
query_is($node, 'postgres', q{SELECT max(token) = count(*) FROM operation WHERE what = 'acquire' GROUP BY resource HAVING max(token) <> count(*)}, '', 'no token was left out');

# The record as the pause kit's checker reads it, a file per resource.  It looks for two holders at a time, a token given
# twice, and a write that was accepted or refused against the order; and has to see each of these that it makes itself.
# A grant presents the token as well.
$node->safe_psql('postgres', q{
	CREATE FUNCTION us(anyelement) RETURNS bigint LANGUAGE sql AS 'SELECT (extract(epoch FROM $1) * 1000000)::bigint';
	CREATE VIEW event AS
	SELECT o.resource, e.at, e.phase, jsonb_build_object('t', us(e.at), 'who', o.client::text, 'what', e.what, 'phase', e.phase, 'id', e.id,
		'lock', o.resource, 'token', o.token::text, 'session', o.token::text, 'code', o.code, 'sent', us(o.began), 'ttl', us(o.ttl)) AS line
	FROM operation o CROSS JOIN LATERAL (VALUES
		(o.what, o.id::text, 'call', o.began), (o.what, o.id::text, CASE o.code WHEN '00000' THEN 'ok' ELSE 'no' END, o.ended),
		('present', 'p' || o.id, 'call', o.began), ('present', 'p' || o.id, 'ok', o.ended), ('session', '', 'ok', o.ended)) AS e (what, id, phase, at)
	WHERE o.what <> 'stop' AND (e.what = o.what OR o.what = 'acquire');
});
my $kit = File::Spec->rel2abs($node->basedir . '/kit');
command_ok([ 'make', '-s', '-C', "$FindBin::RealBin/../pause", "BUILD=$kit", "$kit/pause-check" ], 'the checker is built');
my @histories = map { "$kit/$_.jsonl" } 1 .. $RESOURCES;
$node->safe_psql('postgres', "COPY (SELECT line FROM event WHERE resource = 'load:$_' ORDER BY at, phase) TO '$histories[$_ - 1]'") for 1 .. $RESOURCES;
command_like([ "$kit/pause-check", '--mutants', @histories ], qr/\A(?:\N+: good, \d{4,} operations\n(?:  mutant \N+\n)+  mutants: [45] made, \N+\n){$RESOURCES}\z/,
	'by the checker, no history has two live holders, a token twice or a stale write');

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
@took = ();
for (1 .. 10)
{
	my $expires = ask($holder, "SELECT extract(epoch FROM expires_at) FROM lockfence.acquire('expires', 'holder', '500 ms', '10 min')");
	my $next = ask($waiter, "SELECT token FROM lockfence.acquire('expires', 'waiter', '1 hour', '10 min')");
	push @took, ask($holder, "SELECT 1000 * (extract(epoch FROM granted_at) - $expires) FROM lockfence.leases WHERE resource = 'expires'");
	ask($waiter, "SELECT lockfence.release('expires', $next)");
}
@took = sort { $a <=> $b } @took;
note join ' ', map { sprintf '%.0f', $_ } @took;
cmp_ok($took[0], '>=', 0, 'what is not released is taken once it has expired');
cmp_ok($took[0], '<', 100, '... within 100 ms of that');
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
