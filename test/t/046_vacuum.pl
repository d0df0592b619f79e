# VACUUM may have to have a page for itself, and no deadlock check sees for whom it waits then: an advance that waits has
# none of the marks' pages.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('vacuum');
my $holder = session($node, 'postgres');
my $advance = session($node, 'postgres');
my $limit = $PostgreSQL::Test::Utils::timeout_default . 's';

# the holder holds by a lock or by the mark's row
foreach my $locks (64, 0)
{
	my $name = "vacuum-$locks";

	ask($advance, "SELECT lockfence.present('$name', $_)") foreach 10, 11;
	ask($holder, "SET lockfence.max_resource_locks = $locks; BEGIN; SELECT lockfence.present('$name', 11)");
	start_blocked($advance, "SELECT lockfence.present('$name', 12)");
	accepted_ok($node, 'postgres', "SET statement_timeout = '$limit'; VACUUM (FREEZE) lockfence.mark",
		"VACUUM FREEZE while an advance waits, with max_resource_locks = $locks");
	ask($holder, 'COMMIT');
	is(finish_blocked($advance), '11', 'which goes on');
	mark_is($node, 'postgres', $name, '12', 'and raises the mark');
	refused_ok($node, 'postgres', "SELECT lockfence.present('$name', 11)", 'LF001', 'for good');
}

done_testing();
