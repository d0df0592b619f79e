# Dump and restore by roles that are no superusers, as docs/operations.md sets them up: the marks, the epoch, the log
# and the record come along, and no dump is silently without them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('roles');
my $dir = PostgreSQL::Test::Utils::tempdir;
my $GUARDS = 'GRANT EXECUTE ON FUNCTION lockfence.guard_row(), lockfence.guard_statement(), lockfence.guard_truncate() TO keeper';
my $TABLES = 'lockfence.mark, lockfence.state, lockfence.admin_log, lockfence.fenced, lockfence.ddl_fence';

$node->safe_psql('postgres', 'CREATE ROLE keeper LOGIN; CREATE ROLE plain LOGIN');
$node->safe_psql('postgres', "CREATE DATABASE $_ OWNER keeper TEMPLATE template0") foreach ('src', 'dst', 'poor');
$node->safe_psql($_, "CREATE EXTENSION lockfence; $GUARDS; GRANT ALL ON SCHEMA public TO keeper") foreach ('src', 'dst', 'poor');
$node->safe_psql('src', q{
	SET ROLE keeper;
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	CREATE TABLE job (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence'), lockfence.attach('job', 'jobs/nightly');
	RESET ROLE;
	SELECT lockfence.set_epoch(0, 'the first');
	SELECT lockfence.present('gone', 5);
	SELECT lockfence.prune('0');
	INSERT INTO batch VALUES (1, 'x', 20);
	BEGIN; SELECT lockfence.present('jobs/nightly', 20); INSERT INTO job VALUES (1, 'x'); COMMIT;
	SELECT lockfence.raise_mark('batch-1', 30, 'a reason');
});

# What a restore has to bring back, each as one text.
my %content = (
	marks => 'SELECT resource, token FROM lockfence.mark ORDER BY 1',
	state => q{SELECT name, value FROM lockfence.state WHERE name NOT LIKE 'timeline:%' ORDER BY 1},
	log => 'SELECT id, role, action, resource, before, after, reason FROM lockfence.admin_log ORDER BY id',
	record => 'SELECT target::text, arguments FROM lockfence.fenced ORDER BY 1',
	rows => 'SELECT b::text FROM batch b UNION ALL SELECT j::text FROM job j ORDER BY 1');

sub all_restored
{
	my ($db, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, $db, $content{$_}, $node->safe_psql('src', $content{$_}), "$name: $_ as before") foreach (sort keys %content);
	refused_ok($node, $db, 'UPDATE batch SET fence = 29', 'LF001', "$name: stale token is refused");
	refused_ok($node, $db, 'BEGIN; SELECT lockfence.present(19); DELETE FROM job', 'LF001', "$name: on the other fence too");
	refused_ok($node, $db, "SELECT lockfence.present('gone', 4)", 'LF001', "$name: below the floor");
	accepted_ok($node, $db, "BEGIN; UPDATE batch SET fence = 30; ROLLBACK", "$name: current token is accepted");
	return;
}

sub dump_fails
{
	my ($role, $message, $name, @options) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->command_checks_all([ 'pg_dump', '-U', $role, '-f', "$dir/none", @options, '-d', 'src' ], 1, [qr//], [$message], $name);
	return;
}

sub dump_to
{
	my ($file, $name, @options) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->command_ok([ 'pg_dump', '-U', 'keeper', '-Fc', '-f', "$dir/$file", @options, '-d', 'src' ], "dump: $name");
	return;
}

# ---- dump

# since 18 pg_dump says of a sequence that it has no data for it
dump_fails('keeper', qr/permission denied for (table|sequence)|failed to get data for sequence "admin_log_id_seq"; user may lack SELECT privilege/,
	'the owner of the tables alone cannot dump the marks');
$node->safe_psql('postgres', 'GRANT pg_monitor TO keeper');
dump_to('whole', 'as a member of pg_monitor');
dump_to('data', 'the data alone', '-a');
dump_fails('plain', qr/permission denied/, 'another role cannot');

# Row-level security does not hide rows in silence, of the tables or of the marks.
$node->safe_psql('src', 'ALTER TABLE batch ENABLE ROW LEVEL SECURITY');
dump_to('rls', 'of a table of its own under row-level security');
$node->safe_psql('src', 'ALTER TABLE batch FORCE ROW LEVEL SECURITY');
dump_fails('keeper', qr/row-level security/, 'and not where that is forced upon the owner');
$node->safe_psql('src', 'ALTER TABLE batch NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY');
$node->safe_psql('src', 'ALTER EVENT TRIGGER lockfence_after_ddl DISABLE; ALTER TABLE lockfence.mark ENABLE ROW LEVEL SECURITY');
dump_fails('keeper', qr/row-level security/, 'nor where it hides marks');
$node->safe_psql('postgres', 'ALTER ROLE keeper BYPASSRLS');
dump_to('bypass', 'by a role that bypasses it');
$node->safe_psql('postgres', 'ALTER ROLE keeper NOBYPASSRLS');
$node->safe_psql('src', 'ALTER TABLE lockfence.mark DISABLE ROW LEVEL SECURITY; ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS');

$node->command_like([ 'pg_dumpall', '-U', 'keeper', '-l', 'src', '--roles-only', '--no-role-passwords' ],
	qr/GRANT pg_monitor TO keeper/, 'pg_dumpall --roles-only has the membership');

# ---- restore

# The schema of the extension is there, and is not the owner's to create.
sub restore_options
{
	my ($db) = @_;
	my ($list) = run_command([ 'pg_restore', '-l', "$dir/whole" ]);

	PostgreSQL::Test::Utils::append_to_file("$dir/$db.list",
		join("\n", grep { !/ SCHEMA - lockfence / } split(/\n/, $list)) . "\n");
	return ('pg_restore', '-U', 'keeper', '-e', '-L', "$dir/$db.list", '--no-owner', '--no-privileges', '--no-comments',
		'-d', $db, "$dir/whole");
}

$node->command_checks_all([ restore_options('poor') ], 1, [qr//], [qr/permission denied for (table|sequence)/],
	'who may not write marks cannot restore them');
refused_ok($node, 'poor', 'BEGIN; SELECT lockfence.present(40); DELETE FROM job', 'LF005', 'and what was restored is sealed')
  if $node->safe_psql('poor', "SELECT count(*) FROM lockfence.fences WHERE target = to_regclass('job')");

$node->safe_psql('dst', "GRANT INSERT ON $TABLES TO keeper; GRANT UPDATE ON SEQUENCE lockfence.admin_log_id_seq TO keeper");
$node->command_ok([ restore_options('dst') ],
	'restore: with the grants');
all_restored('dst', 'restored by the owner');
query_is($node, 'dst', "SELECT count(*) > 0 FROM lockfence.verify() WHERE code = 'mark_writable'", 't',
	'verify() tells that the owner may write marks');
$node->safe_psql('dst', "REVOKE INSERT ON $TABLES FROM keeper; REVOKE UPDATE ON SEQUENCE lockfence.admin_log_id_seq FROM keeper");
query_is($node, 'dst', "SELECT code FROM lockfence.verify() WHERE severity = 'error' OR code = 'mark_writable'", '',
	'and finds nothing once that is taken back');
refused_ok($node, 'dst', "SET ROLE keeper; INSERT INTO lockfence.mark VALUES (50, now(), 'batch-1')", '42501', 'it may no more');

# It only raises: an epoch and marks that are higher stay.
$node->safe_psql('postgres', 'CREATE DATABASE higher OWNER keeper TEMPLATE template0');
$node->safe_psql('higher', "CREATE EXTENSION lockfence; $GUARDS; GRANT ALL ON SCHEMA public TO keeper;
	SELECT lockfence.present('batch-1', 90); SELECT lockfence.set_epoch(7, 'later');
	GRANT INSERT ON $TABLES TO keeper; GRANT UPDATE ON SEQUENCE lockfence.admin_log_id_seq TO keeper");
$node->command_ok([ restore_options('higher') ],
	'restore: over marks');
query_is($node, 'higher', "SELECT value FROM lockfence.state WHERE name = 'epoch'", 7, 'the higher epoch stays');
mark_is($node, 'higher', 'batch-1', 90, 'and the higher mark');

done_testing();
