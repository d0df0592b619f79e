# A lock service with several addresses: if one drops packets, the next one is asked.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use IO::Select;
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ValidateTest;

my $certs = new_certs();
my $node = validating_node('addresses');
my $service = new_service(SSL_cert_file => "$certs/elsewhere.pem", SSL_key_file => "$certs/elsewhere.key");

# An address whose packets are dropped: the accept queue of its only socket is full.
my $deaf = IO::Socket::INET->new(LocalAddr => '127.0.0.2', LocalPort => $service->{port}, Listen => 1)
  or die "cannot listen: $!";
my @waiting;
do
{
	push @waiting, IO::Socket::INET->new(PeerAddr => '127.0.0.2', PeerPort => $service->{port}, Blocking => 0)
	  or die "cannot connect: $!";
	@waiting < 100 or die 'the accept queue is never full';
} while (IO::Select->new($waiting[-1])->can_write(1));

# The first of two addresses has half of the time to connect.
sub asked_at
{
	my ($addresses) = @_;

	configure($node, url => $service->url('locks.example'), ca_file => "$certs/ca.pem",
		connect_timeout => 2000, resolve => "locks.example:$service->{port}:$addresses");
	return validate(session($node, 'postgres'), 'a', 5);
}

is(asked_at('127.0.0.2'), 'LF008', 'an address that drops packets');
is(asked_at('127.0.0.1,127.0.0.2'), 't', 'the second of two addresses drops packets');
is(asked_at('127.0.0.2,127.0.0.1'), 't', "the first of two addresses drops packets, try $_") foreach 1 .. 3;
is(asked_at('127.0.0.3,127.0.0.2,127.0.0.1'), 't', 'the first of three addresses refuses connections, the second drops packets');

$node->stop;
done_testing();
