# The latency of lockfence.validate(), for bench/validate: with a connection that is kept, and a new one each time.
#
# Rounds of both take turns, so that what else the machine does falls on both.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../test/validate", "$FindBin::RealBin/../test/t";
use IO::Socket::SSL;
use Test::More;
use ValidateTest;

my $ROUNDS = 20;
my $CALLS = 100;			# a round

my $certs = new_certs();
my $node = validating_node('latency');
my $service = new_service(
	SSL_cert_file => "$certs/server.pem", SSL_key_file => "$certs/server.key", SSL_ca_file => "$certs/ca.pem",
	SSL_verify_mode => SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
configure($node, tls_settings($certs), url => $service->url);
my $session = session($node, 'postgres');

sub median
{
	my @sorted = sort { $a <=> $b } @_;

	return $sorted[@sorted / 2];
}

# The median of a round, in milliseconds.
sub round_of
{
	my ($mode) = @_;

	$service->mode($mode);
	validate($session, 'a', 5) for 1 .. 2;
	return ask($session, "SELECT 1000 * percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM (lockfence.validate_detail('a', g)).latency))
		FROM generate_series(1, $CALLS) g") + 0;
}

my (@kept, @new);
for (1 .. $ROUNDS)
{
	push @kept, round_of('valid');
	push @new, round_of('close');
}
foreach my $way ([ 'kept', @kept ], [ 'new each time', @new ], [ 'ratio', map { $new[$_] / $kept[$_] } 0 .. $#kept ])
{
	my ($name, @values) = @$way;
	my @sorted = sort { $a <=> $b } @values;
	note sprintf "latency, connection %s: median %.3f, lowest %.3f, highest %.3f%s", $name, median(@values), $sorted[0], $sorted[-1],
	  $name eq 'ratio' ? '' : " ms, of $ROUNDS rounds of $CALLS calls";
}
$node->stop;
ok(1, 'done');
done_testing();
