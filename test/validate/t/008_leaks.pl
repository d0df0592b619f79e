# Many calls of one session, cancelled at random or failing in every way, leave nothing behind.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use IO::Socket::SSL;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ValidateTest;

my $CALLS = $ENV{LOCKFENCE_CALLS} // 2000;
my $WARM = 200;
my $ROOM_KB = 4096;			# a connection over TLS that is not freed is about 50

my $certs = new_certs();
my $node = validating_node('leaks');
my $service = new_service(
	SSL_cert_file => "$certs/server.pem", SSL_key_file => "$certs/server.key", SSL_ca_file => "$certs/ca.pem",
	SSL_verify_mode => SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
configure($node, tls_settings($certs), url => $service->url('localhost'));

my $session = session($node, 'postgres');
my $pid = $session->{pid};
$session->{psql}->set_query_timer_restart;

# calls(N): so many, each a statement of its own; what they came to is added to %seen.
my %seen;
sub calls
{
	my ($n) = @_;

	while ($n > 0)
	{
		my $said = ask($session, "SELECT lockfence.validate('a', 5);\n" x ($n < 100 ? $n : 100));
		$seen{ $1 // $2 }++ while $said =~ /^(t)(?=psql:|$)|ERROR:  (\w{5}):/mg;
		$n -= 100;
	}
	return;
}

# A process that interrupts the session now and then.  It goes by how long a call with a new connection takes
# here, so that on any machine calls are interrupted at each stage, and some come through.
sub start_cancelling
{
	my ($call_s) = @_;
	my $canceller = fork // die "fork: $!";

	return $canceller if $canceller;
	srand;
	while (getppid() != 1)
	{
		sleep(rand() < 0.25 ? $call_s * 2 + rand(0.4) : rand($call_s * 2));
		kill('INT', $pid);
	}
	POSIX::_exit(0);
}

sub flat_ok
{
	my ($name, $kb, $files) = @_;
	my $grown = process_status($pid, 'VmRSS') - $kb;

	cmp_ok($grown, '<', $ROOM_KB, "$name: no memory is left behind");
	is(descriptors($pid), $files, "$name: no file is left open");
	note("$name: RSS grew by $grown kB; " . join(', ', map { "$seen{$_} $_" } sort keys %seen));
	return;
}

# With a connection, which a call that is cancelled closes.
sub measure
{
	$service->mode('valid');
	1 until validate($session, 'a', 5) eq 't';
	return (process_status($pid, 'VmRSS'), descriptors($pid));
}

# around(NAME, CALLS, MODE, ARGUMENT): warms up and measures, calls and measures again.
sub around
{
	my ($name, $calls, @mode) = @_;

	$service->mode(@mode);
	calls($WARM);
	my ($kb, $files) = measure();
	%seen = ();
	$service->mode(@mode);
	calls($calls);
	my %counted = %seen;
	my $sum = 0;
	$sum += $_ foreach values %counted;
	is($sum, $calls, "$name: every call came to something");
	measure();
	%seen = %counted;
	flat_ok($name, $kb, $files);
	return;
}

around('calls that are answered', 500, 'valid');

my $start = time;
$service->mode('close');
calls(100);
my $canceller = start_cancelling((time - $start) / 100);
around('calls that are cancelled at random', $CALLS, 'jitter', 4);
kill('KILL', $canceller);
waitpid($canceller, 0);
cmp_ok($seen{57014} // 0, '>', $CALLS / 200, 'many are cancelled');
cmp_ok($seen{t} // 0, '>', $CALLS / 200, 'and many are not');

around('calls that fail', 500, 'any', 'reset 500 close_unanswered truncated wrong_token cut_json http09 noise login garbage empty');
is($seen{LF008}, 500, 'all of them');

is(process_status($pid, 'Threads'), 1, 'no thread is left') if threads_end();
is(validate($session, 'a', 5), 't', 'and the session asks as on the first day');

sub threads_end
{
	for (1 .. 600)
	{
		last if process_status($pid, 'Threads') == 1;
		sleep 0.1;
	}
	return 1;
}

$node->stop;
done_testing();
