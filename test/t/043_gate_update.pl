# The objects of 1.0 under this library, as between installing the package and ALTER EXTENSION UPDATE: there is
# no record of the timeline, so there is no gate, and nothing else is different.  The update brings both.
use strict;
use warnings;

use File::Copy;
use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $SETTINGS = "shared_preload_libraries = 'lockfence'\nlockfence.on_timeline_change = seal\nautovacuum = off\n";
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', $SETTINGS);
$primary->start;
my $share = $primary->safe_psql('postgres', q{SELECT setting FROM pg_config WHERE name = 'SHAREDIR'});
copy("$FindBin::RealBin/../update/lockfence--1.0.sql", "$share/extension/lockfence--1.0.sql") or die "cannot copy: $!";
$primary->safe_psql('postgres', q{
	CREATE EXTENSION lockfence VERSION '1.0';
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
	INSERT INTO batch VALUES (1, 'x', 10);
});

sub promoted
{
	my ($name, $from) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$from->backup($name);
	$node->init_from_backup($from, $name, has_streaming => 1);
	$node->start;
	$from->wait_for_catchup($node, 'replay', $from->lsn('flush'));
	$from->stop('immediate');
	$node->promote;
	return $node;
}

my $first = promoted('first', $primary);
my $session = session($first, 'postgres');
is(ask($session, 'UPDATE batch SET fence = 20'), '', '1.0: a write goes on, on another timeline');
refused_ok($first, 'postgres', 'UPDATE batch SET fence = 19', 'LF001', '1.0: a stale token is refused');
query_is($first, 'postgres', "SELECT lockfence.present('batch-1', 20)", 20, '1.0: present() works');
query_is($first, 'postgres', "SELECT lockfence.is_current('batch-1', 20), lockfence.is_current('batch-1', 19)", 't|f',
	'1.0: is_current() works');
query_is($first, 'postgres', "SELECT accepted, stale FROM lockfence.stats WHERE target = 'batch'::regclass", '1|1',
	'1.0: the statistics have the columns that they had');
query_is($first, 'postgres', 'SELECT * FROM lockfence.verify()', '', '1.0: verify() finds nothing');
query_is($first, 'postgres', 'SELECT count(*) FROM lockfence.state', 0, '1.0: nothing is on record');

$first->safe_psql('postgres', 'ALTER EXTENSION lockfence UPDATE');
query_is($first, 'postgres', 'SELECT state, recorded_timeline, timeline FROM lockfence.gate()', 'open|2|2',
	'updated: the timeline is on record');
is(ask($session, 'UPDATE batch SET fence = 20'), '', 'updated: a session goes on');
refused_ok($first, 'postgres', 'UPDATE batch SET fence = 19', 'LF001', 'updated: a stale token is refused');
query_is($first, 'postgres', 'SELECT * FROM lockfence.verify()', '', 'updated: verify() finds nothing');

my $second = promoted('second', $first);
refused_ok($second, 'postgres', 'UPDATE batch SET fence = 20', 'LF005', 'updated, and promoted once more: the gate is shut');

done_testing();
