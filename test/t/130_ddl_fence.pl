# The fence of DDL through dumps and restores, a takeover during a migration, also by commands that run in no
# transaction block, and changes that are replicated.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = fenced_node('ddl_fence', '', allows_streaming => 'logical');
my $FINDINGS = q{SELECT severity, code, coalesce(remedy, advice) FROM lockfence.verify() WHERE code = 'ddl_fence'};

# A database with what a restore makes after the data.
$node->safe_psql('postgres', 'CREATE DATABASE src');
$node->safe_psql('src', q{
	CREATE EXTENSION lockfence;
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE item (batch_id int REFERENCES batch, note text);
	CREATE INDEX ON item (note);
	CREATE MATERIALIZED VIEW notes AS SELECT note FROM item;
	CREATE FUNCTION nothing() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
	CREATE EVENT TRIGGER "a first" ON ddl_command_end EXECUTE FUNCTION nothing();
	CREATE EVENT TRIGGER "z last" ON ddl_command_end EXECUTE FUNCTION nothing();
	COMMENT ON EVENT TRIGGER "z last" IS 'after that of the fence';
	COMMENT ON TABLE batch IS 'work';
	GRANT SELECT ON batch TO pg_monitor;
	INSERT INTO batch VALUES (1, 'x');
	SELECT lockfence.attach('batch', 'batch-{id}');
	SELECT lockfence.fence_ddl('migrations');
	SELECT lockfence.present('migrations', 42);
});

# restored(NAME, dump options, restore options): a database from a dump of src
sub restored
{
	my ($name, $dump, $restore) = @_;

	$node->command_ok([ 'pg_dump', '-Fc', @$dump, '-f', "$dir/$name", 'src' ], "$name: dumped");
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->command_ok([ 'pg_restore', '--exit-on-error', @$restore, '-d', $name, "$dir/$name" ], "$name: restored");
	return;
}

sub is_fenced
{
	my ($db) = @_;

	query_is($node, $db, $FINDINGS, '', "$db: verify() finds nothing");
	refused_ok($node, $db, 'CREATE TABLE more (id int)', 'LF002', "$db: DDL needs a grant");
	refused_ok($node, $db, q{SELECT lockfence.present('migrations', 41)}, 'LF001', "$db: and a stale one is refused");
	accepted_ok($node, $db, q{BEGIN; SELECT lockfence.present('migrations', 42); CREATE TABLE more (id int); ROLLBACK},
		"$db: and the last one is accepted");
	return;
}

is_fenced('src');
restored('whole', [], []);
is_fenced('whole');
restored('parallel', [], [ '--jobs', '2' ]);
is_fenced('parallel');
$node->command_ok([ 'pg_restore', '--exit-on-error', '--clean', '--if-exists', '-d', 'whole', "$dir/whole" ],
	'restored over itself');
is_fenced('whole');

# Without data there is no record.
restored('schema', ['--schema-only'], []);
refused_ok($node, 'schema', 'CREATE TABLE more (id int)', 'LF005', 'schema: DDL is sealed');
query_is($node, 'schema', $FINDINGS, 'warning|ddl_fence|Call lockfence.fence_ddl() with the resource that DDL needs a grant of, or lockfence.unfence_ddl().',
	'schema: verify() says so');
$node->safe_psql('schema', 'SELECT lockfence.unfence_ddl()');
accepted_ok($node, 'schema', 'CREATE TABLE more (id int)', 'schema: and unfence_ddl() unseals it');

# The role that restores cannot make event triggers: what is left says so.
restored('no_trigger', [], [ '-L', "$dir/list" ]) if without_event_triggers();
query_is($node, 'no_trigger', "SELECT count(*), count(remedy) FROM ($FINDINGS) AS f (severity, code, remedy) WHERE severity = 'error'",
	'2|2', 'no_trigger: verify() finds that they are missing');
$node->safe_psql('no_trigger', $_)
  foreach split(/\n/, $node->safe_psql('no_trigger', q{SELECT remedy FROM lockfence.verify() WHERE code = 'ddl_fence'}));
is_fenced('no_trigger');

sub without_event_triggers
{
	my ($list) = run_command([ 'pg_restore', '-l', "$dir/whole" ]);

	open(my $out, '>', "$dir/list") or die "$dir/list: $!\n";
	print $out grep { !/EVENT TRIGGER.* lockfence_ddl_/ } map { "$_\n" } split(/\n/, $list);
	close($out);
	return 1;
}

# Two migrators at once: the next one waits for the transaction of the first, whose later commands are refused.
my $first = session($node, 'src');
my $second = session($node, 'src');
ask($first, q{BEGIN; SELECT lockfence.present('migrations', 42); CREATE TABLE first (id int);});
start_blocked($second, q{SELECT lockfence.present('migrations', 43)});
like(ask($first, 'ALTER TABLE first ADD note text; COMMIT;'), qr/^\s*$/, 'the holder completes its transaction');
is(finish_blocked($second), '42', 'the next one takes over then');
like(ask($first, q{SELECT lockfence.present('migrations', 42)}), qr/LF001/, 'the one that wakes up late is refused');
like(ask($first, 'DROP TABLE first'), qr/LF002/, 'nor can it go on without');
$_->{psql}->quit foreach ($first, $second);

# A session with the grant of the next holder.
sub granted_session
{
	my ($token) = @_;
	local $ENV{PGOPTIONS} = "-c lockfence.session_grant=migrations=$token";

	return session($node, 'src');
}

# Is the index there, and valid?
sub index_state
{
	my ($name) = @_;

	return "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('$name')";
}

# A tool that was not made for it.
my $migrator = granted_session(43);
my $granted = ask($migrator, q{
	ALTER TABLE item ADD quantity int;
	CREATE INDEX CONCURRENTLY item_quantity ON item (quantity);
	DROP INDEX CONCURRENTLY item_quantity;
	VACUUM item;
	CREATE INDEX CONCURRENTLY item_quantity ON item (quantity);
	BEGIN; CREATE TABLE made_by_tool (id int); COMMIT;});
is($granted, '', 'a session with the grant needs to present nothing');
query_is($node, 'src', index_state('item_quantity'), 't', 'its index is valid');
refused_ok($node, 'src', 'CREATE INDEX CONCURRENTLY other ON item (quantity)', 'LF002', 'a session without it is refused');
query_is($node, 'src', index_state('other'), '', 'and leaves no index behind');

# While an index is made concurrently the next migrator takes over, without waiting for that or being waited for.
foreach my $concurrently (
	[ 'making an index', 'CREATE INDEX CONCURRENTLY late ON item (note)', index_state('late'), 'f' ],
	[ 'dropping an index', 'DROP INDEX CONCURRENTLY item_quantity', index_state('item_quantity'), 'f' ])
{
	my ($what, $command, $state, $expected) = @$concurrently;
	my $blocker = session($node, 'src');
	my $next = session($node, 'src');
	my $late = granted_session($node->safe_psql('src', q{SELECT token FROM lockfence.mark WHERE resource = 'migrations'}));

	ask($blocker, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM item;');
	start_blocked($late, $command);
	ask($next, q{SET lock_timeout = '60s'; BEGIN ISOLATION LEVEL REPEATABLE READ;});
	like(ask($next, q{SELECT lockfence.present('migrations', token + 1) FROM lockfence.mark WHERE resource = 'migrations'}),
		qr/^\d+$/, "$what: the next holder takes over at once");
	is(ask($next, 'COMMIT'), '', "$what: and commits");
	ask($blocker, 'COMMIT');
	like(finish_blocked($late), qr/ERROR:  LF001/, "$what: the command of the late one is refused at its end");
	# 13 does not take back that an index is valid
	query_is($node, 'src', $state, $expected, "$what: and leaves an invalid index") if server_version($node) >= 14;
	$_->{psql}->quit foreach ($blocker, $next, $late);
}
$migrator->{psql}->quit;

# What an applied change has a trigger do needs no grant.
my $subscriber = fenced_node('subscriber');
$node->safe_psql('postgres', 'CREATE TABLE change (id int PRIMARY KEY); CREATE PUBLICATION changes FOR TABLE change');
$subscriber->safe_psql('postgres', q{
	CREATE TABLE change (id int PRIMARY KEY);
	CREATE FUNCTION make_table() RETURNS trigger LANGUAGE plpgsql AS
	$$BEGIN EXECUTE format('CREATE TABLE public.made_%s (id int)', new.id); RETURN new; END$$;
	CREATE TRIGGER make_table AFTER INSERT ON change FOR EACH ROW EXECUTE FUNCTION make_table();
	ALTER TABLE change ENABLE ALWAYS TRIGGER make_table;
});
my $connection = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION changes CONNECTION '$connection' PUBLICATION changes");
$subscriber->wait_for_subscription_sync($node, 'changes');
$subscriber->safe_psql('postgres', q{SELECT lockfence.fence_ddl('migrations')});
refused_ok($subscriber, 'postgres', 'INSERT INTO change VALUES (1)', 'LF002', 'a client of the subscriber needs a grant');
$node->safe_psql('postgres', 'INSERT INTO change VALUES (2)');
$node->wait_for_catchup('changes');
query_is($subscriber, 'postgres', q{SELECT to_regclass('made_1'), to_regclass('made_2')}, '|made_2', 'what is applied needs none');

done_testing();
