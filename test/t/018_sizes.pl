# Sizes of shared memory in the configuration: without effect, and without a word to each client, where the library is
# not preloaded; as they say, where it is.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %sizes = (max_cached_marks => [ 100, 16384 ], max_tables => [ 64, 1024 ], max_refusals => [ 10, 1024 ], max_takeovers => [ 20, 1024 ]);
my $node = fenced_node('sizes', join('', map { "lockfence.$_ = $sizes{$_}[0]\n" } sort keys %sizes));

# What a client gets that loads the library and asks for the settings.
sub sizes_are
{
	my ($which, $name) = @_;
	my ($out, $err) = try_sql($node, 'postgres', join(';', q{LOAD 'lockfence'}, map { "SHOW lockfence.$_" } sort keys %sizes));

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($out, join("\n", map { $sizes{$_}[$which] } sort keys %sizes), "$name: the sizes");
	is($err, '', "$name: no warning");
	return;
}

sub findings_are
{
	my ($expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, 'postgres', q{SELECT count(*) FROM lockfence.verify() WHERE code = 'size_ignored'}, $expected, $name);
	return;
}

sizes_are(1, 'not preloaded');
findings_are(4, 'not preloaded: verify() says that they have no effect');
unlike(slurp_file($node->logfile), qr/cannot be changed/, 'not preloaded: nor is there one in the log');

# What is to count after the restart can be set before it.
accepted_ok($node, 'postgres', q{LOAD 'lockfence'; ALTER SYSTEM SET lockfence.max_tables = 72}, 'not preloaded: ALTER SYSTEM');
$sizes{max_tables}[0] = 72;
$node->reload;
sizes_are(1, 'not preloaded, after a reload');
findings_are(4, 'not preloaded, after a reload: verify()');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'lockfence'");
$node->restart;
sizes_are(0, 'preloaded');
findings_are(0, 'preloaded: nothing to find');
query_is($node, 'postgres', 'SELECT max_tables, max_refusals FROM lockfence.stats_info()', '72|10', 'preloaded: they are in effect');

$node->safe_psql('postgres', 'ALTER SYSTEM SET lockfence.max_tables = 80');
$node->reload;
$node->poll_query_until('postgres', q{SELECT pending_restart FROM pg_settings WHERE name = 'lockfence.max_tables'})
  or die 'no reload';
sizes_are(0, 'preloaded, changed since');

done_testing();
