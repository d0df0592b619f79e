# lockfence.on_timeline_change in a server that does not preload the library: a client that connects with one of
# its own puts it in the place of the server's, and gets the strictest.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use Test::More;

my $node = fenced_node('hidden_policy');
my $present = q{SELECT lockfence.present('lock', 10)};

$node->append_conf('postgresql.conf', q{lockfence.on_timeline_change = 'seal'});
$node->reload;
$node->safe_psql('postgres', q{
	CREATE ROLE writer LOGIN;
	GRANT EXECUTE ON FUNCTION lockfence.present(text, lockfence.fence_token) TO writer;
	UPDATE lockfence.state SET value = value + 1000 WHERE name LIKE 'timeline:%';
});

# A plain promotion, as the history tells it: what "auto" would let pass.
open my $history, '>', $node->data_dir . '/pg_wal/00000001.history' or die $!;
print $history "1001\t0/1000000\tno recovery target specified\n";
close $history;

for my $options ('', '-c lockfence.on_timeline_change=auto', '-c lockfence.on_timeline_change=ignore')
{
	local $ENV{PGOPTIONS} = $options;
	my (undef, undef, $err) = $node->psql('postgres', $present,
		extra_params => [ '-U', 'writer', '-v', 'VERBOSITY=verbose' ]);
	like($err, qr/ERROR:  LF005:/, "sealed for a client with '$options'");
}
$node->append_conf('postgresql.conf', q{lockfence.on_timeline_change = 'ignore'});
$node->reload;
accepted_ok($node, 'postgres', $present, 'as the server says');

done_testing();
