# Whatever the lock service does not do, a backend that waits for it can be interrupted.
#
# Requests may take a minute here, so an interrupt that works is told from a request that ends by itself; how
# long each took is shown as a comment.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use ValidateTest;

# Less than a request may take, and more than any machine needs.
my $SOON_MS = 30_000;

my $certs = new_certs();
my $node = validating_node('interrupts');
my $plain = new_service();
my $secure = new_service(SSL_cert_file => "$certs/server.pem", SSL_key_file => "$certs/server.key");
my ($service, $session);

# how the service hangs => what it has seen by then
my @WAYS = (
	[ $plain, 'silent', 'request', 'a service that never answers' ],
	[ $plain, 'half', 'request', 'a service that stops in the middle' ],
	[ $plain, 'drip', 'request', 'a service that drips its answer' ],
	[ $plain, 'drip_headers', 'request', 'a service that drips headers' ],
	[ $secure, 'silent', 'request', 'a service that never answers over TLS' ],
	[ $secure, 'stall', 'connect', 'a service that never shakes hands' ],
);

# The session's call hangs.
sub hang
{
	my ($mode, $seen, @before) = @_;

	$service->mode($mode);
	$service->forget;
	start($session, join(';', @before, "SELECT lockfence.validate('a', 5)"));
	$service->wait_for($seen);
	wait_for_call($session);
	return;
}

sub soon_ok
{
	my ($start, $name) = @_;
	my $ms = milliseconds_since($start);

	cmp_ok($ms, '<', $SOON_MS, "$name: soon");
	note("$name: $ms ms");
	return;
}

sub works_ok
{
	my ($name) = @_;

	$service->mode('valid');
	is(validate($session, 'a', 5), 't', "$name: the session goes on");
	return;
}

# ---- a call ends, the session goes on

foreach my $way (@WAYS)
{
	(my ($mode, $seen, $name), $service) = (@$way[1 .. 3], $way->[0]);
	configure($node, url => $service->url, ca_file => "$certs/ca.pem");
	$session = session($node, 'postgres');

	hang($mode, $seen);
	my $start = time;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
	like(finish($session), qr/ERROR:  57014:/, "$name: cancelled");
	soon_ok($start, "cancel, $name");
	works_ok($name);

	$service->mode($mode);
	ask($session, "SET statement_timeout = '300ms'");
	$start = time;
	like(ask($session, "SELECT lockfence.validate('a', 5)"), qr/ERROR:  57014:.*statement timeout/, "$name: statement_timeout");
	soon_ok($start, "statement_timeout of 300 ms, $name");
	ask($session, 'RESET statement_timeout');
	works_ok($name);

	hang($mode, $seen);
	$start = time;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($session->{pid})");
	wait_until_gone($session);
	soon_ok($start, "terminate, $name");
}

# A session that the lock service keeps waiting, once the server's shutdown has ended the last one.
foreach my $way (@WAYS[ 0, 5 ])
{
	(my ($mode, $seen, $name), $service) = (@$way[1 .. 3], $way->[0]);
	configure($node, url => $service->url, ca_file => "$certs/ca.pem");
	$session = session($node, 'postgres');
	hang($mode, $seen);
	my $start = time;
	$node->stop('fast');
	soon_ok($start, "fast shutdown, $name");
	$node->start;
}

# A backend does not outlive its postmaster in a call.
$service = $plain;
configure($node, url => $service->url);
$session = session($node, 'postgres');
hang('silent', 'request');
my $start = time;
$node->kill9;
wait_until_gone($session);
soon_ok($start, 'death of the postmaster');
$node->start;

# ---- the call's own limit holds for all of it

foreach my $way (@WAYS)
{
	(my ($mode, $name), $service) = (@$way[1, 3], $way->[0]);
	configure($node, url => $service->url, ca_file => "$certs/ca.pem", timeout => 700);
	$session = session($node, 'postgres');
	$service->mode($mode);
	$start = time;
	is(validate($session, 'a', 5), 'LF008', "$name: given up");
	cmp_ok(milliseconds_since($start), '>=', 690, "$name: not before its time");
	soon_ok($start, "timeout of 700 ms, $name");
	works_ok($name);
}
configure($node, url => $secure->url, ca_file => "$certs/ca.pem", connect_timeout => 300);
$service = $secure;
$session = session($node, 'postgres');
$service->mode('stall');
$start = time;
is(validate($session, 'a', 5), 'LF008', 'a connection that does not come to be is given up');
soon_ok($start, 'connect_timeout of 300 ms');
works_ok('after it');

# ---- what else a session may be told while it waits

configure($node, url => $plain->url);
$service = $plain;
$session = session($node, 'postgres');
hang('silent', 'request');
$service->mode('valid');
configure($node, url => $plain->url, timeout => 55_000);
ok(kill(0, $session->{pid}), 'a reload does not disturb a call');
query_is($node, 'postgres', "SELECT state FROM pg_stat_activity WHERE pid = $session->{pid}", 'active', 'which goes on');
like(query_event($session), qr/^Extension\|/, 'it is seen to wait for an extension');
SKIP:
{
	skip 'wait events of extensions have names since PostgreSQL 17', 1 if $node->pg_version < 17;
	like(query_event($session), qr/lock.*service|validate/i, 'under a name of its own');
}
$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
like(finish($session), qr/ERROR:  57014:/, 'it is cancelled all the same');

sub query_event
{
	my ($of) = @_;

	return $node->safe_psql('postgres', "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = $of->{pid}");
}

$service->mode('valid');
like(ask($session, "SELECT lockfence.validate('a', 5)"), qr/^t$/, 'and the session goes on');

$node->stop;
done_testing();
