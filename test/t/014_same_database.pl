# A database in the place of one that is gone: the OIDs of it and of its table of marks may be the same.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use Test::More;

my $node = fenced_node('same_database', "shared_preload_libraries = 'lockfence'");

plan skip_all => 'CREATE DATABASE takes no OID' if $node->safe_psql('postgres', 'SHOW server_version_num') < 150000;

my $create = 'CREATE DATABASE twin TEMPLATE pattern OID 70000';

$node->safe_psql('postgres', 'CREATE DATABASE pattern');
$node->safe_psql('pattern', 'CREATE EXTENSION lockfence');
$node->safe_psql('postgres', $create);
# the second finds the mark, and has it cached
$node->safe_psql('twin', q{SELECT lockfence.present('lock', 50)}) for 1 .. 3;
my $marks = q{SELECT 'lockfence.mark'::regclass::oid};
my $before = $node->safe_psql('twin', $marks);
$node->safe_psql('postgres', 'DROP DATABASE twin');
$node->safe_psql('postgres', $create);
query_is($node, 'twin', $marks, $before, 'the table of marks has the same OID');

accepted_ok($node, 'twin', q{SELECT lockfence.present('lock', 50)}, 'the new database takes its first token');
mark_is($node, 'twin', 'lock', '50', 'which is its mark');
refused_ok($node, 'twin', q{SELECT lockfence.present('lock', 40)}, 'LF001', 'a lower one is stale');

done_testing();
