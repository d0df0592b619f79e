# The circuit breaker: what an outage costs, who tries whether it is over, and what an interrupt does to that.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ValidateTest;

my $BACKENDS = 200;
my $CALLS = 10;			# of each
my $AT_ONCE = 32;		# requests under way, in the whole server
my $FAILURES = 5;

my $node = validating_node('breaker', "max_connections = 220\nrestart_after_crash = on\n");
my $service = new_service();
my %SETTING = (url => $service->url, breaker_failures => $FAILURES);

# What a call comes to, without ending the transaction.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE outcome (code text, ms float8);
CREATE FUNCTION try_validate() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
	code text;
BEGIN
	BEGIN
		code := lockfence.validate('a', 5)::text;
	EXCEPTION WHEN OTHERS THEN
		code := SQLSTATE;
	END;
	INSERT INTO outcome VALUES (code, 1000 * extract(epoch FROM clock_timestamp() - start));
END $$;
SQL

# crowd(NAME): all backends at once; the outcomes as "CODE COUNT, ...".
sub crowd
{
	my ($name) = @_;
	my $script = new_dir() . '/crowd.sql';

	$node->safe_psql('postgres', 'TRUNCATE outcome');
	append_to_file($script, "SELECT try_validate();\n");
	$node->command_ok([ 'pgbench', '-n', '-c', $BACKENDS, '-t', $CALLS, '-f', $script, 'postgres' ], $name);
	return $node->safe_psql('postgres',
		"SELECT string_agg(code || ' ' || n, ', ' ORDER BY code) FROM (SELECT code, count(*) n FROM outcome GROUP BY 1) o");
}

sub log_lines
{
	my ($regex) = @_;

	return scalar(() = slurp_file($node->logfile) =~ /LOG:  lockfence_validate: $regex/g);
}

# ---- an outage

my $all = $BACKENDS * $CALLS;
configure($node, %SETTING, breaker_reset => 600_000);
is(crowd("$BACKENDS backends ask"), "true $all", 'a service that answers is asked by everybody');
is($service->count('request'), $all, 'each time');

foreach my $way ([ 'silent', 'does not answer' ], [ '500', 'fails' ], [ 'reset', 'hangs up' ])
{
	my ($mode, $name) = @$way;

	configure($node, %SETTING, timeout => 2000, breaker_reset => 1);	# the probe closes what the last one opened
	sleep 0.01;
	is($node->safe_psql('postgres', 'SELECT lockfence.validate(\'a\', 5)'), 't', 'all is well');
	configure($node, %SETTING, timeout => 2000, breaker_reset => 600_000);
	$service->forget;
	$service->mode($mode);
	my ($opened, $start) = (log_lines('the lock service is not asked any more'), time);
	is(crowd("$BACKENDS backends ask a service that $name"), "LF008 $all", 'every call fails');
	my $asked = $service->count('connect');
	cmp_ok($asked, '>=', $FAILURES, 'it is asked until it has failed often enough');
	cmp_ok($asked, '<=', $FAILURES + $AT_ONCE, 'and by few');
	is(log_lines('the lock service is not asked any more') - $opened, 1, 'which is logged once');
	note("a service that $name: $asked requests for $all calls, in " . milliseconds_since($start) . ' ms');

	$service->forget;
	is(crowd('and again'), "LF008 $all", 'every call fails again');
	is($service->count('connect'), 0, 'and no call asks');
	note('the slowest of them took ' . $node->safe_psql('postgres', 'SELECT max(ms)::int FROM outcome') . ' ms');
	$service->mode('valid');
}
like((try_sql($node, 'postgres', 'SELECT lockfence.validate(\'a\', 5)'))[1], qr/ERROR:  LF008:.*DETAIL:  .*$FAILURES times/s,
	'the error says why no call asks');

# ---- the probe

# A server whose breaker is open, and time for a probe has come.
sub open_breaker
{
	my ($mode) = @_;

	configure($node, %SETTING, breaker_reset => 600_000);
	$service->mode('500');
	$node->psql('postgres', 'SELECT lockfence.validate(\'a\', 5)') for 1 .. $FAILURES;
	$service->mode($mode);
	configure($node, %SETTING, breaker_reset => 1);
	sleep 0.01;
	$service->forget;
	return;
}

# The session probes, and hangs.
sub start_probe
{
	my $prober = session($node, 'postgres');

	start($prober, "SELECT lockfence.validate('a', 5)");
	$service->wait_for('request');
	wait_for_call($prober);
	return $prober;
}

my $other = session($node, 'postgres');
open_breaker('silent');
my $prober = start_probe();
is(join(' ', map { validate($other, 'a', 5) } 1 .. 20), join(' ', ('LF008') x 20), 'while one probes, others fail');
is($service->count('connect'), 1, 'and there is one probe');
is(crowd('while one probes, a crowd'), "LF008 $all", 'fails too');
is($service->count('connect'), 1, 'and sends nothing');
$service->mode('valid');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($prober->{pid})");
like(finish($prober), qr/ERROR:  57014:/, 'a probe is cancelled');
is(validate($other, 'a', 5), 't', 'and the next one may try');
cmp_ok(log_lines('the lock service answers again'), '>=', 1, 'whose success is logged');
is(crowd('then a crowd'), "true $all", 'is answered');

open_breaker('500');
configure($node, %SETTING, breaker_reset => 600_000);
is(validate($other, 'a', 5), 'LF008', 'before its time there is no probe');
is($service->count('connect'), 0, 'none');
configure($node, %SETTING, breaker_reset => 1);
sleep 0.01;
is(validate($other, 'a', 5), 'LF008', 'a probe fails');
is($service->count('connect'), 1, 'one');
configure($node, %SETTING, breaker_reset => 600_000);
is(validate($other, 'a', 5), 'LF008', 'and the breaker is open as before');
is($service->count('connect'), 1, 'one');

# ---- probers that do not come back

open_breaker('silent');
$prober = start_probe();
$node->safe_psql('postgres', "SELECT pg_terminate_backend($prober->{pid})");
wait_until_gone($prober);
$service->mode('valid');
is(validate($other, 'a', 5), 't', 'a backend that is terminated in its probe leaves it to the next');

# One that is stopped: what it has taken lapses with its deadline.
open_breaker('silent');
configure($node, %SETTING, breaker_reset => 1, timeout => 1000);
$prober = start_probe();
kill('STOP', $prober->{pid});
$service->mode('valid');
ok($node->poll_query_until('postgres', "SELECT code = 'true' FROM (SELECT try_validate()) t, LATERAL (SELECT code FROM outcome ORDER BY ctid DESC LIMIT 1) o"),
	'a backend that is stopped in its probe does not keep the others from trying');
kill('CONT', $prober->{pid});
like(finish($prober), qr/ERROR:  LF008:/, 'and has failed, when it wakes up');
is(validate($other, 'a', 5), 't', 'which changes nothing');

# A backend that is killed takes the server down and up again, with a breaker that is closed.
open_breaker('silent');
$prober = start_probe();
kill('KILL', $prober->{pid});
$node->poll_query_until('postgres', 'SELECT true') or die;
$service->mode('valid');
is($node->safe_psql('postgres', 'SELECT lockfence.validate(\'a\', 5)'), 't', 'a backend that is killed in its probe does not, either');

# ---- what is no failure

$other = session($node, 'postgres');
configure($node, %SETTING, breaker_reset => 600_000);
$service->mode('silent');
for (1 .. $FAILURES + 1)
{
	ask($other, "SET statement_timeout = '50ms'");
	ask($other, "SELECT lockfence.validate('a', 5)");
}
ask($other, 'RESET statement_timeout');
$service->mode('refused');
is(validate($other, 'a', 5), 'f', 'cancelled calls do not open the breaker');
is(join(' ', map { validate($other, 'a', 5) } 1 .. $FAILURES), join(' ', ('f') x $FAILURES), 'nor does a no');
foreach my $round (1 .. $FAILURES)
{
	$service->mode('500');
	validate($other, 'a', 5) for 2 .. $FAILURES;
	$service->mode('valid');
	is(validate($other, 'a', 5), 't', 'nor do failures with an answer in between');
}

$node->stop;
done_testing();
