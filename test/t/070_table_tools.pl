# Tools that copy or rebuild the tables of marks while an application advances: no advance that was acknowledged is
# lost, and no token that it made stale passes afterwards.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('tools', "shared_preload_libraries = 'lockfence'\n");
my $RESOURCES = 30000;

# what the tools have to copy
$node->safe_psql('postgres', qq{
	CREATE TABLE acknowledged (resource text, token bigint);
	SELECT count(*) FROM (SELECT lockfence.present('r-' || i, 1) FROM generate_series(1, $RESOURCES) i OFFSET 0) s;
});

# ---- an application

my $round = 0;

# start_writing(): advances one resource after the other, each once and in a transaction of its own, until it is stopped.
# So what a tool loses stays lost.
sub start_writing
{
	my $file = "$PostgreSQL::Test::Utils::tmp_check/advances-" . ++$round . '.sql';
	my %writer = (out => '', err => '');
	my $token = $round + 1;

	open(my $script, '>', $file) or die "$file: $!";
	foreach my $i (1 .. $RESOURCES)
	{
		print $script qq{SELECT 'r-$i', $token FROM lockfence.present('r-$i', $token);\n};
	}
	close($script) or die "$file: $!";
	$writer{run} = IPC::Run::start(
		[ 'psql', '-XqAt', '-F', ' ', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres') . ' application_name=writer', '-f', $file ],
		'>', \$writer{out}, '2>', \$writer{err});
	wait_for_writes(\%writer);
	return \%writer;
}

# Some more advances than there are now were acknowledged, or refused, or it is through.
sub wait_for_writes
{
	my ($writer) = @_;
	my $before = length($writer->{out}) + length($writer->{err});
	my $timeout = time + $PostgreSQL::Test::Utils::timeout_default;

	while (length($writer->{out}) + length($writer->{err}) < $before + 1000 && $writer->{run}->pumpable)
	{
		die 'the application does not go on' if time > $timeout;
		$writer->{run}->pump;
	}
	return;
}

# stop_writing(WRITER): notes what was acknowledged.
sub stop_writing
{
	my ($writer) = @_;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/acknowledged-$round";

	wait_for_writes($writer);
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'writer'});
	$writer->{run}->finish;
	$writer->{out} =~ s/^r-\d+ \d*\z//m;		# what was under way
	$node->safe_psql('postgres', "COPY acknowledged FROM STDIN (DELIMITER ' ');\n$writer->{out}\\.\n");
	return;
}

# nothing_lost(WHAT)
sub nothing_lost
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, 'postgres', q{
		SELECT count(*) FROM (SELECT resource, max(token) AS token FROM acknowledged GROUP BY resource) a
			LEFT JOIN lockfence.mark m USING (resource)
		WHERE m.token IS NULL OR m.token < a.token}, 0, "$what: every acknowledged advance is there");
	accepted_ok($node, 'postgres', q{
		DO $$
		DECLARE
			a record;
		BEGIN
			FOR a IN SELECT resource, max(token) AS token FROM acknowledged GROUP BY resource HAVING max(token) > 1 LOOP
				BEGIN
					PERFORM lockfence.present(a.resource, a.token - 1);
					RAISE EXCEPTION 'token % passed for resource %', a.token - 1, a.resource;
				EXCEPTION WHEN SQLSTATE 'LF001' THEN
					NULL;
				END;
			END LOOP;
		END
		$$}, "$what: every stale token is refused");
	query_is($node, 'postgres', q{SELECT count(*) FROM lockfence.mark WHERE resource LIKE 'r-%'}, $RESOURCES, "$what: no mark is gone");
	return;
}

# ---- PostgreSQL's own

foreach my $command ('VACUUM FULL lockfence.mark', 'CLUSTER lockfence.mark USING mark_pkey', 'REINDEX TABLE lockfence.mark',
	'REINDEX TABLE CONCURRENTLY lockfence.mark', 'VACUUM (FREEZE) lockfence.mark')
{
	my $writer = start_writing();

	foreach (1 .. 3)
	{
		accepted_ok($node, 'postgres', $command, $command);
		wait_for_writes($writer);
	}
	stop_writing($writer);
	is($writer->{err} =~ /ERROR/, '', "$command: the application notices nothing") or diag($writer->{err});
	nothing_lost($command);
}

# A holder that has the mark from the cache, and no lock on the table, is waited for nevertheless.
$node->safe_psql('postgres', q{SELECT lockfence.present('held', 7)});
my $holder = session($node, 'postgres');
ask($holder, q{SELECT lockfence.present('held', 7)});
ask($holder, q{BEGIN; SELECT lockfence.present('held', 7)});
$node->safe_psql('postgres', 'VACUUM FULL lockfence.mark');
my $advance = session($node, 'postgres');
start_blocked($advance, q{SELECT lockfence.present('held', 8)});
ask($holder, 'COMMIT');
is(finish_blocked($advance), '7', 'an advance waits for who held a resource before VACUUM FULL');

# ---- pg_repack, which copies the tables of extensions too

# repack(ARGUMENT...): returns what it says.
sub repack
{
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'pg_repack', '--echo', '-h', $node->host, '-p', $node->port, '-d', 'postgres', @_ ], '>', \$out, '2>', \$err);
	return $out . $err;
}

my $writer;
SKIP:
{
	skip 'pg_repack is not packaged for 19 yet', 1 if server_version($node) >= 19;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_repack');
	$writer = start_writing();
	my $said = repack() . repack('--table=lockfence.mark') . repack('--table=lockfence.state');
	stop_writing($writer);
	like($said, qr/table "lockfence\.(ddl_)?fenced?" must stay as the extension made it/, 'pg_repack begins with a record, where it is refused');
	like($said, qr/CREATE TRIGGER repack_trigger .* ON lockfence\.mark/, 'it comes to the marks');
	like($said, qr/table "lockfence\.mark" must stay as the extension made it/, 'where it is refused');
	like($said, qr/table "lockfence\.state" must stay as the extension made it/, 'and as it is with the state');
	is($writer->{err} =~ /ERROR/, '', 'pg_repack: the application notices nothing') or diag($writer->{err});
	nothing_lost('pg_repack');

	unlike(repack('--exclude-extension=lockfence'), qr/ERROR/, 'pg_repack that leaves the extension out');

	$writer = start_writing();
	like(repack('--only-indexes', '--table=lockfence.mark'), qr/must stay as the extension made it/, 'nor does it make indexes of the marks');
	stop_writing($writer);
	nothing_lost('pg_repack --only-indexes');

	# Where nothing keeps it from its trigger, nothing is acknowledged while it is there.
	$node->safe_psql('postgres', q{ALTER EVENT TRIGGER lockfence_before_ddl DISABLE; ALTER EVENT TRIGGER lockfence_after_ddl DISABLE});
	my $file = sub { return $node->safe_psql('postgres', q{SELECT pg_relation_filepath('lockfence.mark')}) };
	my $before = $file->();
	$writer = start_writing();
	$said = repack('--table=lockfence.mark');
	stop_writing($writer);
	unlike($said, qr/ERROR/, 'event triggers off: pg_repack copies the marks');
	isnt($file->(), $before, 'event triggers off: and has the copy take their place');
	like($writer->{err}, qr/ERROR:  LF009/, 'event triggers off: advances are refused meanwhile');
	nothing_lost('event triggers off, pg_repack');
	$said = repack('--only-indexes', '--table=lockfence.mark');
	unlike($said, qr/ERROR/, 'event triggers off: pg_repack makes the indexes again');
	nothing_lost('event triggers off, pg_repack --only-indexes');
	$node->safe_psql('postgres', q{ALTER EVENT TRIGGER lockfence_before_ddl ENABLE ALWAYS; ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS});
}

# ---- as pgcompacttable does it: updates that change nothing, by place and as a replica, until the last pages are empty

$writer = start_writing();
refused_ok($node, 'postgres', q{
	SET session_replication_role = replica;
	UPDATE ONLY lockfence.mark SET advanced_at = advanced_at
	WHERE ctid = ANY (ARRAY(SELECT ctid FROM lockfence.mark ORDER BY ctid DESC LIMIT 100))}, 'LF009', 'nor are marks moved by an update');
stop_writing($writer);
nothing_lost('updates by place');

done_testing();
