# A backend keeps its connection to the lock service as long as all is well, and leaves nothing behind.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use IO::Socket::SSL;
use PostgreSQL::Test::Utils;
use Test::More;
use ValidateTest;

my $certs = new_certs();
my $node = validating_node('connections');
my $service = new_service(
	SSL_cert_file => "$certs/server.pem", SSL_key_file => "$certs/server.key", SSL_ca_file => "$certs/ca.pem",
	SSL_verify_mode => SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
my %ours = (tls_settings($certs), url => $service->url);
configure($node, %ours);

# connections_ok(MODE, N, NAME): two good calls with one of MODE in between take so many connections.
my $session = session($node, 'postgres');
sub connections_ok
{
	my ($mode, $expected, $name) = @_;

	$service->mode('valid');
	is(validate($session, 'a', 5), 't', "$name: before") or return;
	$service->forget;
	$service->mode($mode);
	validate($session, 'a', 6);
	$service->mode('valid');
	is(validate($session, 'a', 7), 't', "$name: after");
	is($service->count('connect'), $expected, $name);
	return;
}

# ---- how long it is kept

is(join('', map { validate($session, 'a', $_) } 1 .. 20), 't' x 20, 'twenty calls');
is($service->count('request'), 20, 'are twenty requests');
is($service->count('connect'), 1, 'over one connection');
ask($session, 'BEGIN; SAVEPOINT s; SELECT lockfence.validate(\'a\', 5); ROLLBACK TO s; SELECT 1/0; ROLLBACK');
is(validate($session, 'a', 5), 't', 'after a rollback');
is($service->count('connect'), 1, 'it is the same connection');

connections_ok('valid', 0, 'a yes keeps the connection');
connections_ok('refused', 0, 'so does a no');
connections_ok('500', 1, 'a failure does not');
connections_ok('wrong_token', 1, 'nor does an answer to another question');
connections_ok('close_unsaid', 1, 'a connection that the service has closed is made anew');
connections_ok('close', 1, 'also if it was told');

is($service->count('end'), 1, 'a connection is closed once it is not used');
$service->forget;
configure($node, %ours);
is(validate($session, 'a', 5), 't', 'after a reload that changes nothing');
is($service->count('connect'), 1, 'the connection is another one: the files may have changed');

# A key that has been replaced, under the same name.
rename("$certs/client.key", "$certs/kept.key");
rename("$certs/client.pem", "$certs/kept.pem");
rename("$certs/other.key", "$certs/client.key");
rename("$certs/other.pem", "$certs/client.pem");
is(validate($session, 'a', 5), 't', 'a key is used until it is said to have changed');
configure($node, %ours);
is(validate($session, 'a', 5), 'LF008', 'then it is not');
rename("$certs/kept.key", "$certs/client.key");
rename("$certs/kept.pem", "$certs/client.pem");
configure($node, %ours);
is(validate($session, 'a', 5), 't', 'the new one is');

$service->mode('500');
validate($session, 'a', 5);
my $files = descriptors($session->{pid});
$service->forget;
$service->mode('silent');
start($session, "SELECT lockfence.validate('a', 5)");
$service->wait_for('request');
wait_for_call($session);
$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
like(finish($session), qr/ERROR:  57014:/, 'a call that is cancelled');
$service->wait_for('end');
pass('closes its connection');
is(descriptors($session->{pid}), $files, 'and with it all that it had open');
$service->mode('valid');
is(validate($session, 'a', 5), 't', 'the next call');
$service->forget;
$session->{psql}->quit;
$service->wait_for('end');
pass('a session that ends closes its connection');

# ---- threads and signals

# A name has to be looked up, in a thread of curl's.
configure($node, %ours, url => $service->url('localhost'));
$service->mode('valid');
$session = session($node, 'postgres');
ask($session, 'SELECT 1');
my @MASKS = qw(SigBlk SigIgn SigCgt);
my %before = map { $_ => process_status($session->{pid}, $_) } @MASKS;
is(validate($session, 'a', 5), 't', 'a name that is looked up');
is_deeply({ map { $_ => process_status($session->{pid}, $_) } @MASKS }, \%before, 'leaves the signals as they were');
is(threads_in_the_end($session->{pid}), 1, 'and no thread behind');

# A thread that has done its work may take a moment to be gone.
sub threads_in_the_end
{
	my ($pid) = @_;

	for (1 .. 600)
	{
		last if process_status($pid, 'Threads') == 1;
		select(undef, undef, undef, 0.1);
	}
	return process_status($pid, 'Threads');
}

# ---- who loads what

my $fencing = session($node, 'postgres');
ask($fencing, "CREATE TABLE item (id int PRIMARY KEY); SELECT lockfence.attach('item', 'item/{id}', 'fence');
	INSERT INTO item VALUES (1, 10); UPDATE item SET fence = 11; SELECT lockfence.present('item/1', 12)");
like(ask($fencing, 'UPDATE item SET fence = 9'), qr/LF001/, 'a session that fences');
my $without = slurp_file("/proc/$fencing->{pid}/maps");
like($without, qr/lockfence\.so/, 'has loaded the fence');
unlike($without, qr/libcurl|libjansson|lockfence_validate/, 'and neither libcurl nor jansson');
like(slurp_file("/proc/$session->{pid}/maps"), qr/libcurl.*lockfence_validate/s, 'one that asks has');
my $postmaster = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/ ? $1 : die;
unlike(slurp_file("/proc/$postmaster/maps"), qr/libcurl|libjansson|lockfence_validate/, 'the postmaster has not');
is(process_status($postmaster, 'Threads'), 1, 'and has one thread');

$node->stop;
done_testing();
