# A session with so many open files that curl's descriptors do not fit into a set of select().
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use POSIX ();

my ($FULL, $WANTED);

# Before the test's libraries send its output elsewhere.
BEGIN
{
	$FULL = 1024;		# FD_SETSIZE
	$WANTED = 4096;
	if (POSIX::sysconf(POSIX::_SC_OPEN_MAX()) < $WANTED && !$ENV{LOCKFENCE_LIMIT_RAISED})
	{
		$ENV{LOCKFENCE_LIMIT_RAISED} = 1;
		exec('sh', '-c', "ulimit -n $WANTED 2>/dev/null; exec \"\$@\"", 'sh', $^X, (map { "-I$_" } @INC), $0) or die "exec: $!";
	}
}

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use ValidateTest;

plan skip_all => 'this machine or user may not have so many files open' if POSIX::sysconf(POSIX::_SC_OPEN_MAX()) < $WANTED;

# The server and its sessions inherit these.
$^F = $WANTED;
my @files = map { open(my $file, '<', '/dev/null') or die "open: $!"; $file } 1 .. $FULL;
my $certs = new_certs();
my $node = validating_node('descriptors', "max_files_per_process = 2000\n");
close $_ foreach @files;

my $service = new_service(SSL_cert_file => "$certs/server.pem", SSL_key_file => "$certs/server.key");
configure($node, url => $service->url('localhost'), ca_file => "$certs/ca.pem");
my $session = session($node, 'postgres');

sub sockets { return map { m{(\d+)$} } grep { readlink($_) =~ /^socket:/ } glob("/proc/$session->{pid}/fd/*") }


# Its own files take up the lower descriptors that are free.
ask($session, "SELECT count(*) FROM $_") foreach map { "pg_$_" } qw(proc operator opclass opfamily amop amproc cast conversion
	collation language description ts_config ts_dict ts_parser ts_template aggregate rewrite depend);
my %before = map { $_ => 1 } sockets();
is(validate($session, 'a', 5), 't', 'a call with a new connection');
my @new = grep { !$before{$_} } sockets();
cmp_ok(scalar(@new), '>=', 1, 'which is kept');
is(join(' ', grep { $_ < $FULL } @new), '', 'under a descriptor that does not fit');
my $start = time;
is(join(' ', map { validate($session, 'a', 5) } 1 .. 100), join(' ', ('t') x 100), 'calls over a kept one');
note('each took ' . milliseconds_since($start) / 100 . ' ms');

$service->mode('silent');
start($session, q{SELECT lockfence.validate('a', 5)});
wait_for_call($session);
$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
like(finish($session), qr/ERROR:  57014:/, 'a call that waits is cancelled');
configure($node, url => $service->url('localhost'), ca_file => "$certs/ca.pem", timeout => 700);
is(validate($session, 'a', 5), 'LF008', 'and given up after its time');

$node->stop;
done_testing();
