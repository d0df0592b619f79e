# ValidateTest: what the tests of lockfence_validate share, on top of FenceTest.
package ValidateTest;

use strict;
use warnings;

use Certs qw(make_certs);
use Exporter 'import';
use FenceTest;
use File::Spec;
use IO::Socket::INET;
use LockService;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = (@FenceTest::EXPORT, qw(
  validating_node configure new_dir new_certs tls_settings new_service unused_port validate
  start wait_for_call finish wait_until_gone milliseconds_since process_status descriptors
));

# No test waits for these: a test that sees them pass has waited for something that did not happen.
my $PATIENCE_MS = 60_000;

# validating_node(NAME, CONF, init parameters): a running server with both extensions, whose breaker
# stays out of the way and whose requests take a minute to give up.
sub validating_node
{
	my ($name, $conf, %params) = @_;
	my $node = fenced_node($name, "shared_preload_libraries = 'lockfence'\n" . <<"CONF" . ($conf // ''), %params);
lockfence_validate.timeout = $PATIENCE_MS
lockfence_validate.connect_timeout = $PATIENCE_MS
lockfence_validate.breaker_failures = 0
include_if_exists = 'validate.conf'
CONF

	$node->safe_psql('postgres', 'CREATE EXTENSION lockfence_validate');
	return $node;
}

# configure(NODE, SETTING => VALUE, ...): these settings of lockfence_validate, those of before no more.
# Returns once every backend has been told.
my $configured = 0;
sub configure
{
	my ($node, %setting) = @_;
	my $file = $node->data_dir . '/validate.conf';

	open(my $conf, '>', $file) or die "$file: $!";
	print $conf map { "lockfence_validate.$_ = '$setting{$_}'\n" } sort keys %setting;
	print $conf "lockfence_test.configured = " . ++$configured . "\n";
	close $conf;
	$node->reload;
	$node->poll_query_until('postgres',
		"SELECT current_setting('lockfence_test.configured', true) = '$configured'")
	  or die 'the configuration is not read';
	return;
}

sub new_service
{
	my (%tls) = @_;

	return LockService->new(dir => new_dir(), (%tls ? (tls => \%tls) : ()));
}

# No process listened there a moment ago.
sub unused_port
{
	return IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)->sockport;
}

# A directory that the server, which runs elsewhere, can be told of.
sub new_dir { return File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir()) }

# A directory of certificates: see Certs.
sub new_certs
{
	my $dir = new_dir();

	make_certs($dir);
	return $dir;
}

# What a server has to be told to ask with them.
sub tls_settings
{
	my ($dir) = @_;

	return (ca_file => "$dir/ca.pem", cert_file => "$dir/client.pem", key_file => "$dir/client.key");
}

# validate(SESSION, RESOURCE, TOKEN): t, f, or the SQLSTATE it failed with.
sub validate
{
	my ($session, $resource, $token) = @_;
	my $said = ask($session, "SELECT lockfence.validate('" . ($resource =~ s/'/''/gr) . "', $token)");

	return $said =~ /(?:ERROR|FATAL):  (\w{5}):/ ? $1 : $said;
}

# Starts a statement and does not wait for it.
sub start
{
	my ($session, $sql) = @_;

	$session->{psql}->{stderr} = '';
	$session->{psql}->query_until(qr/^started$/m, "\\echo started\n$sql;\n");
	return;
}

# Waits until the session waits for the lock service, and not only the service for it.
sub wait_for_call
{
	my ($session) = @_;

	$session->{node}->poll_query_until('postgres',
		"SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $session->{pid}")
	  or die 'the session does not wait for the lock service';
	return;
}

# Waits for the end of a statement that was started; returns what it wrote.
sub finish { return finish_blocked(@_) }

sub wait_until_gone
{
	my ($session) = @_;
	my $deadline = time + $PATIENCE_MS / 1000;

	while (kill(0, $session->{pid}))
	{
		die "process $session->{pid} does not go away" if time > $deadline;
		sleep 0.005;
	}
	return;
}

sub milliseconds_since { return int((time - $_[0]) * 1000) }

# One field of /proc/PID/status.
sub process_status
{
	my ($pid, $field) = @_;

	return (slurp_file("/proc/$pid/status") =~ /^\Q$field\E:\s+(\w+)/m)[0];
}

# How many file descriptors a process has open.
sub descriptors
{
	my ($pid) = @_;

	opendir(my $dir, "/proc/$pid/fd") or die "/proc/$pid/fd: $!";
	return scalar(grep { !/^\./ } readdir($dir));
}

1;
