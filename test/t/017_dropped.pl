# DROP EXTENSION while others wait for the fence's own tables: they are told what is missing, and what to do.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('dropped');
my $dropper = session($node, 'postgres');

my $MISSING = qr/ERROR:  42P01: relation "lockfence\.(mark|state)" does not exist\n.*\nHINT:  Create the extension lockfence/;

my %attempts = (
	'a higher token' => "SELECT lockfence.present('a', 2)",
	'is_current()' => "SELECT lockfence.is_current('a', 1)",
	'raise_mark()' => "SELECT lockfence.raise_mark('a', 2, 'test')",
	'gate()' => 'SELECT lockfence.gate()');

foreach my $what (sort keys %attempts)
{
	# a backend that has used the fence remembers its tables, and one that has not looks them up
	foreach my $used (0, 1)
	{
		my $name = "$what, in a session that has " . ($used ? 'used the fence' : 'not');
		my $s = session($node, 'postgres');

		ask($s, "SELECT lockfence.present('a', 1)") if $used;
		ask($dropper, 'BEGIN; DROP EXTENSION lockfence');
		start_blocked($s, $attempts{$what});
		ask($dropper, 'COMMIT');
		like(finish_blocked($s), $MISSING, $name);
		ask($dropper, 'CREATE EXTENSION lockfence');
		unlike(ask($s, "SELECT lockfence.present('a', 1)"), qr/ERROR/, "$name: and goes on with a new one");
		$s->{psql}->quit;
	}
}

$dropper->{psql}->quit;
done_testing();
