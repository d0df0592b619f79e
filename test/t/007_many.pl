# Many resources in one transaction, under the default size of the lock table.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('many', "max_locks_per_transaction = 64\nmax_connections = 20\nshared_buffers = 32MB\n");
my $MB = 1024 * 1024;

$node->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}');
});

my $s = session($node, 'postgres');
my $LOCKS = q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 19526};

my $tells_memory = server_version($node) >= 14;

sub memory { return $tells_memory ? ask($s, 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts') : 0; }

# Every resource of one transaction costs its memo, a few hundred bytes.
sub bounded_ok
{
	my ($before, $limit, $name) = @_;
	my $more = memory() - $before;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
  SKIP:
	{
		skip 'this server does not tell', 1 unless $tells_memory;
		note sprintf('%.1f MB', $more / $MB);
		cmp_ok($more, '<', $limit * $MB, $name);
	}
	return;
}

# The most that the process ever took, shared buffers included, where the system tells.
sub peak_ok
{
	my ($limit, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
  SKIP:
	{
		skip 'no /proc here', 1 unless -r "/proc/$s->{pid}/status";
		my ($peak) = slurp_file("/proc/$s->{pid}/status") =~ /^VmHWM:\s+(\d+) kB$/m;

		note sprintf('%.1f MB', $peak / 1024);
		cmp_ok($peak, '<', $limit * 1024, $name);
	}
	return;
}

# ---- marks that are made

ask($s, 'SELECT lockfence.is_current($$x$$, 1)');
my $before = memory();
ask($s, 'BEGIN; SELECT lockfence.present(10)');
is(ask($s, 'INSERT INTO batch SELECT g FROM generate_series(1, 100000) g'), '',
	'one statement makes 100,000 marks');
is(ask($s, $LOCKS), 0, 'and holds no lock of theirs');
bounded_ok($before, 60, 'in less than 60 MB');
is(ask($s, 'COMMIT'), '', 'and commits');
is(ask($s, 'SELECT count(*) FROM lockfence.mark WHERE token = 10'), 100000, 'all of them are there');
bounded_ok($before, 10, 'the memory is given back');
peak_ok(200, 'the backend never took 200 MB');

# ---- marks that are held

ask($s, 'BEGIN; SELECT lockfence.present(10)');
is(ask($s, q{UPDATE batch SET note = 'x' WHERE id <= 20000}), '', '20,000 resources are held at their marks');
is(ask($s, $LOCKS), 64, '64 of them by locks');
bounded_ok($before, 30, 'in less than 30 MB');

my $other = session($node, 'postgres');
ask($other, "SET lock_timeout = '100ms'");
like(ask($other, "SELECT lockfence.present('batch-1', 11)"), qr/55P03/, 'no session advances past the first');
like(ask($other, "SELECT lockfence.present('batch-20000', 11)"), qr/55P03/, 'nor past the last');
is(ask($other, "SELECT lockfence.present('batch-20000', 10)"), 10, 'a sibling holds it as well');
is(ask($other, "SELECT lockfence.present('batch-20001', 11)"), 10, 'and what was not written to is free');
is(ask($s, 'COMMIT'), '', 'and commits');
is(ask($other, "SELECT lockfence.present('batch-20000', 11)"), 10, 'then an advance goes through');

# In savepoints, each of which takes back its part.
ask($s, 'BEGIN; SELECT lockfence.present(10)');
is(ask($s, q{DO $$
	BEGIN
		FOR i IN 1..200 LOOP
			BEGIN
				UPDATE batch SET note = 'y' WHERE id BETWEEN i * 50 AND i * 50 + 49;
				IF i > 1 THEN
					RAISE division_by_zero;
				END IF;
			EXCEPTION WHEN division_by_zero THEN
				NULL;
			END;
		END LOOP;
	END
	$$}), '', '10,000 resources are held in savepoints, most of which roll back');
is(ask($s, 'SELECT count(*) FROM lockfence.presented() WHERE resource IS NOT NULL'), 50, 'the rest is still held');
is(ask($s, $LOCKS), 50, 'by locks');
is(ask($other, "SELECT lockfence.present('batch-101', 11)"), 10, 'what was rolled back is free');
like(ask($other, "SELECT lockfence.present('batch-51', 11)"), qr/55P03/, 'what was not is held');
ask($s, 'COMMIT');

# ---- one resource, many rows

$node->safe_psql('postgres', q{
	CREATE TABLE item (id int PRIMARY KEY, batch int, note text);
	SELECT lockfence.attach('item', 'items-{batch}');
	BEGIN; SELECT lockfence.present(10); INSERT INTO item SELECT g, 1 FROM generate_series(1, 100000) g; COMMIT;
});
$before = memory();
ask($s, 'BEGIN; SELECT lockfence.present(10)');
is(ask($s, q{UPDATE item SET note = 'x'}), '', '100,000 rows of one resource are written');
is(ask($s, $LOCKS), 1, 'under one lock');
bounded_ok($before, 10, 'in less than 10 MB');
is(ask($s, q{SELECT count(*) FROM lockfence.mark WHERE resource = 'items-1'}), 1, 'and one mark');
ask($s, 'COMMIT');
peak_ok(200, 'the backend never took 200 MB');

# ---- one mark, many advances

# An advance frees space on its page, so that it neither grows the table nor leaves entries in the indexes.
$node->safe_psql('postgres', 'CREATE SEQUENCE token');
my $SIZE = q{SELECT pg_relation_size('lockfence.mark') / 8192};
my $pages = $node->safe_psql('postgres', $SIZE);
foreach my $clients (1, 2)
{
	my $advances = $clients * 3000;

	$node->pgbench("-n -c $clients -t 3000", 0, [qr/processed: $advances\/$advances/], [qr/^$/], "advances by $clients",
		{ "007_climb_$clients" => q{
			BEGIN;
			SELECT pg_advisory_xact_lock(1);
			SELECT lockfence.present('climb', nextval('token'));
			COMMIT;
		} });
	cmp_ok($node->safe_psql('postgres', $SIZE), '<', $pages + 10, 'the mark has not grown the table');
}

# ---- fences that come and go

sub cached_fences
{
	return ask($s, q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'lockfence fence'});
}

# Another session fences a table and takes the fence off; this one writes to it in between.
my $cached = $tells_memory ? cached_fences() : 0;
$node->safe_psql('postgres', 'CREATE TABLE visited (id int)');
foreach my $i (1 .. 20)
{
	$node->safe_psql('postgres', "SELECT lockfence.attach('visited', 'visited-{id}')");
	ask($s, "BEGIN; SELECT lockfence.present($i); INSERT INTO visited VALUES (1); COMMIT");
	$node->safe_psql('postgres', "SELECT lockfence.detach('visited')");
}
mark_is($node, 'postgres', 'visited-1', 20, 'a table was fenced 20 times');
SKIP:
{
	skip 'this server does not tell', 1 unless $tells_memory;
	cmp_ok(cached_fences(), '<=', $cached + 1, 'a session keeps none of the fences that are gone');
}
$_->{psql}->quit foreach ($s, $other);

done_testing();
