# A name that has to be asked of a nameserver which never answers.
#
# Needs a machine whose resolver is that nameserver: run makes one of namespaces, where it may.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use IO::Select;
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use ValidateTest;

plan skip_all => 'no namespaces to have a nameserver in: this machine or user may not make them'
  unless $ENV{LOCKFENCE_NAMESERVER};

my $SOON_MS = 30_000;		# the resolver itself would take minutes: see run
my $nameserver = IO::Socket::INET->new(Proto => 'udp', LocalAddr => $ENV{LOCKFENCE_NAMESERVER})
  or die "no nameserver: $!";
my $node = validating_node('resolver');
my $certs = new_dir();
append_to_file("$certs/ca.pem", '');
my %SETTING = (url => 'https://locks.example:8443/v1/validate', ca_file => "$certs/ca.pem");

# Forgets what the nameserver was asked; returns how much there was.
sub questions
{
	my $count = 0;

	while (IO::Select->new($nameserver)->can_read(0))
	{
		$nameserver->recv(my $ignored, 512);
		$count++;
	}
	return $count;
}

sub soon_ok
{
	my ($start, $name) = @_;
	my $ms = milliseconds_since($start);

	cmp_ok($ms, '<', $SOON_MS, "$name: soon");
	note("$name, a nameserver that never answers: $ms ms");
	return;
}

# A session whose call waits for the nameserver.
sub hang
{
	my $session = session($node, 'postgres');

	questions();
	start($session, "SELECT lockfence.validate('a', 5)");
	IO::Select->new($nameserver)->can_read(60) or die 'the nameserver is not asked';
	wait_for_call($session);
	return $session;
}

configure($node, %SETTING);

# ---- the thread that resolves has no signals

my $session = hang();
my @threads = grep { $_ != $session->{pid} } map { m{(\d+)$} } glob("/proc/$session->{pid}/task/*");
cmp_ok(scalar(@threads), '>=', 1, 'a thread looks the name up');
foreach my $thread (@threads)
{
	my $blocked = hex(substr(process_status("$session->{pid}/task/$thread", 'SigBlk'), -8));
	is(join(' ', grep { !($blocked & (1 << ($_ - 1))) } 1 .. 8, 10 .. 15, 17), '', 'with every signal blocked that can be');
}

# ---- interrupts

my $start = time;
$node->safe_psql('postgres', "SELECT pg_cancel_backend($session->{pid})");
like(finish($session), qr/ERROR:  57014:/, 'cancel');
soon_ok($start, 'cancel');

ask($session, "SET statement_timeout = '300ms'");
$start = time;
like(ask($session, "SELECT lockfence.validate('a', 5)"), qr/ERROR:  57014:/, 'statement_timeout');
soon_ok($start, 'statement_timeout of 300 ms');
ask($session, 'RESET statement_timeout');
$start = time;
$session->{psql}->quit;
wait_until_gone($session);
soon_ok($start, 'the end of a session whose call was cancelled');

$session = hang();
$start = time;
$node->safe_psql('postgres', "SELECT pg_terminate_backend($session->{pid})");
wait_until_gone($session);
soon_ok($start, 'terminate');

configure($node, %SETTING, timeout => 700);
$session = session($node, 'postgres');
$start = time;
is(validate($session, 'a', 5), 'LF008', 'the call gives up');
soon_ok($start, 'timeout of 700 ms');

configure($node, %SETTING);
$session = hang();
$start = time;
$node->stop('fast');
soon_ok($start, 'fast shutdown');
$node->start;

# ---- pinned

questions();
configure($node, %SETTING, timeout => 5000, resolve => 'locks.example:8443:127.0.0.1');
$session = session($node, 'postgres');
is(validate($session, 'a', 5), 'LF008', 'with a pinned address the service is not there');
is(questions(), 0, 'and the nameserver is not asked');

$node->stop;
done_testing();
