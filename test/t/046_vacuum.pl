# VACUUM may have to have a page for itself, and no deadlock check sees for whom it waits then: a session that waits for a
# resource has none of the marks' pages.
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

sub vacuum_ok
{
	my ($when) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	accepted_ok($node, 'postgres', "SET statement_timeout = '$limit'; VACUUM (FREEZE) lockfence.mark", "VACUUM FREEZE $when");
	return;
}

# the holder holds by a lock or by the mark's row
foreach my $locks (64, 0)
{
	my $name = "vacuum-$locks";

	ask($advance, "SELECT lockfence.present('$name', $_)") foreach 10, 11;
	ask($holder, "SET lockfence.max_resource_locks = $locks; BEGIN; SELECT lockfence.present('$name', 11)");
	start_blocked($advance, "SELECT lockfence.present('$name', 12)");
	vacuum_ok("while an advance waits, with max_resource_locks = $locks");
	ask($holder, 'COMMIT');
	is(finish_blocked($advance), '11', 'which goes on');
	mark_is($node, 'postgres', $name, '12', 'and raises the mark');
	refused_ok($node, 'postgres', "SELECT lockfence.present('$name', 11)", 'LF001', 'for good');
}

# an equal token behind an advance; names of this length are not cached, so that it has read the mark
my $equal = session($node, 'postgres');

foreach my $locks (64, 0)
{
	my $name = "equal-$locks-" . 'x' x 100;

	ask($advance, "SELECT lockfence.present('$name', $_)") foreach 10, 11;
	ask($holder, "RESET lockfence.max_resource_locks; BEGIN; SELECT lockfence.present('$name', 11)");
	start_blocked($advance, "SELECT lockfence.present('$name', 12)");
	start_blocked($equal, "SET lockfence.max_resource_locks = $locks; SELECT lockfence.present('$name', 11)");
	vacuum_ok("while an equal token waits, with max_resource_locks = $locks");
	is(ask($holder, 'ANALYZE lockfence.mark'), '', 'and the holder may do what VACUUM keeps out');
	ask($holder, 'COMMIT');
	is(finish_blocked($advance), '11', 'the advance goes on');
	like(finish_blocked($equal), qr/ERROR:  LF001:/, 'and makes the other stale');
}

# a superuser has locked the mark by hand, as no holder does
ask($advance, "SELECT lockfence.present('locked', $_)") foreach 10, 11;
ask($holder, "BEGIN; SELECT token FROM lockfence.mark WHERE resource = 'locked' FOR UPDATE");
start_blocked($equal, "SET lockfence.max_resource_locks = 0; SELECT lockfence.present('locked', 11)");
vacuum_ok('while a token waits to lock a mark that is locked by hand');
ask($holder, 'COMMIT');
is(finish_blocked($equal), '11', 'and holds it when that is over');

# a change by hand, of a mark whose row is locked
ask($advance, "SELECT lockfence.present('reset', $_)") foreach 10, 11;
ask($holder, "SET lockfence.max_resource_locks = 0; BEGIN; SELECT lockfence.present('reset', 11)");
start_blocked($advance, "SELECT lockfence.reset_mark('reset', 5, 'test')");
vacuum_ok('while reset_mark() waits');
ask($holder, 'COMMIT');
is(finish_blocked($advance), '11', 'which goes on');
mark_is($node, 'postgres', 'reset', '5', 'and sets the mark');

done_testing();
