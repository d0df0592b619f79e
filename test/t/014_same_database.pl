# A database in the place of one that is gone: the OIDs of it and of its table of marks may be the same.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use Test::More;

my $create = 'CREATE DATABASE twin TEMPLATE pattern OID 70000';

# The databases are dropped and made by sessions that never load the library, unless every session does.
sub test_twins
{
	my ($node) = @_;
	my $name = $node->name;

	$node->safe_psql('postgres', 'CREATE DATABASE pattern');
	$node->safe_psql('pattern', 'CREATE EXTENSION lockfence');
	$node->safe_psql('postgres', $create);
	# the second finds the mark, and has it cached
	$node->safe_psql('twin', q{SELECT lockfence.present('lock', 50)}) for 1 .. 3;
	my $marks = q{SELECT 'lockfence.mark'::regclass::oid};
	my $before = $node->safe_psql('twin', $marks);
	$node->safe_psql('postgres', 'DROP DATABASE twin');
	$node->safe_psql('postgres', $create);
	query_is($node, 'twin', $marks, $before, "$name: the table of marks has the same OID");

	accepted_ok($node, 'twin', q{SELECT lockfence.present('lock', 50)}, "$name: the new database takes its first token");
	mark_is($node, 'twin', 'lock', '50', "$name: which is its mark");
	refused_ok($node, 'twin', q{SELECT lockfence.present('lock', 40)}, 'LF001', "$name: a lower one is stale");
	return;
}

my $preloaded = fenced_node('preloaded', "shared_preload_libraries = 'lockfence'");

plan skip_all => 'CREATE DATABASE takes no OID'
  if $preloaded->safe_psql('postgres', 'SHOW server_version_num') < 150000;

test_twins($preloaded);
# since 17 there is a cache without preloading
test_twins(fenced_node('not_preloaded', "shared_preload_libraries = ''"));

done_testing();
