# Dump and restore, in every mode that leaves something out: the fences are alive afterwards, and what was
# stale before is stale after.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('dump');
my $dir = PostgreSQL::Test::Utils::tempdir;

# A token of epoch 1.
sub token { return 281474976710656 + shift; }
my %t = map { $_ => token($_) } (5, 7, 9, 10, 15, 20, 30, 40);

$node->safe_psql('postgres', 'CREATE DATABASE src');
$node->safe_psql('src', qq{
	CREATE EXTENSION lockfence;
	CREATE FUNCTION knows(text, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
	CREATE TABLE batch (id int, item text, note text, PRIMARY KEY (id, item));
	CREATE TABLE job (id int PRIMARY KEY, note text);
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	CREATE TABLE part (k int, note text) PARTITION BY LIST (k);
	CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
	CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);
	CREATE TABLE "It's odd" ("a {b}" int, n int);
	CREATE TABLE tally (id int, n int);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
	SELECT lockfence.attach('job', 'jobs/nightly');
	SELECT lockfence.attach('doc');
	SELECT lockfence.attach('part', 'part-{k}', 'fence');
	SELECT lockfence.attach('"It''s odd"', 'it''s {n} "odd" \\ {{n}}', 'a tok', accept => 'presented', repeat => 'reject');
	SELECT lockfence.attach('tally', 'tally-{id}', enforcement => 'advisory', missing => 'allow', validator => 'knows(text,bigint)');
	SELECT lockfence.set_epoch(1, 'a reason');
	SELECT lockfence.present('gone', $t{5});
	SELECT lockfence.prune('0');
	INSERT INTO batch VALUES (1, 'a', 'old', $t{10});
	INSERT INTO batch VALUES (1, 'b', 'new', $t{20}), (2, 'c', 'only', $t{20});
	BEGIN; SELECT lockfence.present('jobs/nightly', $t{20}); INSERT INTO job VALUES (1, 'x'); COMMIT;
	INSERT INTO doc VALUES (1, 'x', $t{20});
	INSERT INTO part VALUES (1, 'x', $t{20}), (2, 'y', $t{20});
	BEGIN; SELECT lockfence.present($t{20}); INSERT INTO "It's odd" VALUES (1, 1); COMMIT;
	BEGIN; SELECT lockfence.present($t{20}); INSERT INTO tally VALUES (1, 1); COMMIT;
	SELECT lockfence.raise_mark('fenced out', $t{30}, 'another reason');
});

# What a restore has to bring back, each as one text.
my $FENCES = q{SELECT f.target, f.kind, f.resource, f.token_column, f.accept, f.enforcement, f.missing, f.repeat,
	f.validator, f.inherited, f.triggers FROM lockfence.fences f ORDER BY f.target::text};
my $MARKS = 'SELECT resource, token FROM lockfence.mark ORDER BY 1';
my $STATE = q{SELECT name, value FROM lockfence.state WHERE name NOT LIKE 'timeline:%' ORDER BY 1};
my $LOG = 'SELECT id, at, role, action, resource, before, after, reason FROM lockfence.admin_log ORDER BY id';
my $ROWS = q{SELECT 'batch', b::text FROM batch b UNION ALL SELECT 'job', j::text FROM job j
	UNION ALL SELECT 'doc', d::text FROM doc d UNION ALL SELECT 'part', p::text FROM part p
	UNION ALL SELECT 'odd', o::text FROM "It's odd" o UNION ALL SELECT 'tally', t::text FROM tally t ORDER BY 1, 2};

my $RECORD = 'SELECT target::text, arguments FROM lockfence.fenced ORDER BY 1';

my $ERRORS = q{SELECT target, code, remedy FROM lockfence.verify() WHERE severity = 'error'};

sub same_ok
{
	my ($db, $what, $query, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, $db, $query, $node->safe_psql('src', $query), "$name: $what as before");
	return;
}

# Refused in the source, each by its mark: the tokens are not lower than what the rows carry.
my %stale = (
	'named fence' => "UPDATE batch SET fence = $t{15} WHERE item = 'a'",
	'new row' => "INSERT INTO batch VALUES (1, 'z', 'z', $t{15})",
	'constant fence' => "BEGIN; SELECT lockfence.present($t{15}); DELETE FROM job; COMMIT",
	'row fence' => "UPDATE doc SET fence = $t{15}",
	'partitioned table' => "UPDATE part SET fence = $t{15} WHERE k = 1",
	'partition' => "UPDATE part_2 SET fence = $t{15}",
	'quoted names' => qq{BEGIN; SELECT lockfence.present($t{15}); UPDATE "It's odd" SET "a {b}" = 2; COMMIT},
	'single use' => qq{BEGIN; SELECT lockfence.present($t{20}); UPDATE "It's odd" SET "a {b}" = 2; COMMIT},
	'force-release' => "SELECT lockfence.present('fenced out', $t{20})",
	'folded mark' => "SELECT lockfence.present('gone', $t{5} - 1)",
	'epoch' => "SELECT lockfence.present('any', 40)");

sub stale_refused
{
	my ($db, $name, @but) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $what (sort keys %stale)
	{
		refused_ok($node, $db, $stale{$what}, 'LF001', "$name: stale token is refused: $what")
		  unless grep { $_ eq $what } @but;
	}
	accepted_ok($node, $db, "BEGIN; UPDATE batch SET fence = $t{20} WHERE id = 2; ROLLBACK",
		"$name: current token is accepted");
	return;
}

sub all_restored
{
	my ($db, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	same_ok($db, 'fences', $FENCES, $name);
	same_ok($db, 'marks', $MARKS, $name);
	same_ok($db, 'epoch and floor', $STATE, $name);
	same_ok($db, 'log', $LOG, $name);
	same_ok($db, 'record', $RECORD, $name);
	same_ok($db, 'rows', $ROWS, $name);
	query_is($node, $db, $ERRORS, '', "$name: verify() finds nothing");
	stale_refused($db, $name);
	accepted_ok($node, $db, "SELECT lockfence.raise_mark('later', $t{40}, 'test')", "$name: log goes on");
	return;
}

sub dump_to
{
	my ($file, @options) = @_;

	$node->command_ok([ 'pg_dump', '-f', "$dir/$file", @options, '-d', 'src' ], "pg_dump @options");
	return;
}

sub new_database
{
	my ($db, $sql) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db TEMPLATE template0");
	$node->safe_psql($db, $sql) if defined $sql;
	return;
}

# Restores a plain dump; returns psql's errors, with SQLSTATE.
sub restore
{
	my ($db, $file, @options) = @_;
	my ($out, $err);

	IPC::Run::run([ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-v', 'ON_ERROR_STOP=1', @options,
			'-d', $node->connstr($db), '-f', "$dir/$file" ], '>', \$out, '2>', \$err);
	return $err;
}

# What verify() says, run as it stands, is all that is to be done.
sub mended_ok
{
	my ($db, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql($db, q{
		DO $$
		DECLARE finding record;
		BEGIN
			FOR finding IN SELECT remedy FROM lockfence.verify() WHERE severity = 'error' AND remedy IS NOT NULL LOOP
				EXECUTE finding.remedy;
			END LOOP;
		END
		$$});
	query_is($node, $db, $ERRORS, '', "$name: verify() has said how to mend it");
	return;
}

stale_refused('src', 'source');
query_is($node, 'src', $ERRORS, '', 'source: verify() finds nothing');
like($node->safe_psql('src', $FENCES), qr/^tally\|template\|tally-\{id\}\|\|any\|advisory\|allow\|accept\|knows\(text,bigint\)\|f\|/m,
	'every setting is there to be lost');
unlike($node->safe_psql('src', $FENCES), qr/origin|disabled/, 'and all guards fire always');

# ---- the whole database

dump_to('whole.sql');
new_database('whole');
is(restore('whole', 'whole.sql'), '', 'whole: restores without a word');
all_restored('whole', 'whole');

dump_to('whole.dir', '-Fd', '-j2');
new_database('parallel');
$node->command_ok([ 'pg_restore', '-e', '-j2', '-d', 'parallel', "$dir/whole.dir" ], 'parallel: restores');
all_restored('parallel', 'parallel');

new_database('sections');
foreach my $section ('pre-data', 'data', 'post-data')
{
	$node->command_ok([ 'pg_restore', '-e', "--section=$section", '-d', 'sections', "$dir/whole.dir" ],
		"sections: restores $section");
}
all_restored('sections', 'sections');

dump_to('inserts.sql', '--inserts', '--no-owner');
new_database('inserts');
is(restore('inserts', 'inserts.sql'), '', 'inserts: restores without a word');
all_restored('inserts', 'inserts');

$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE src');
all_restored('copied', 'copied as template');

# ---- the schema alone: fences without marks

dump_to('schema.sql', '-s');
new_database('empty');
is(restore('empty', 'schema.sql'), '', 'schema: restores without a word');
same_ok('empty', 'fences', $FENCES, 'schema');
query_is($node, 'empty', "$MARKS; $STATE", '', 'schema: no marks, no epoch');
refused_ok($node, 'empty', "INSERT INTO batch VALUES (1, 'a', 'x')", 'LF005', 'schema: fences are alive, and sealed');
$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE empty")
  foreach ('live', 'live_bypass', 'live_marks', 'live_origin', 'live_parallel', 'live_both');

# ---- tables alone (-t): without the extension and its marks

dump_to('tables.sql', '-t', 'batch', '-t', 'job', '-t', 'doc');
new_database('tables', 'CREATE EXTENSION lockfence');
is(restore('tables', 'tables.sql'), '', '-t: restores without a word');
query_is($node, 'tables', $MARKS, '', '-t: no marks');
query_is($node, 'tables', "SELECT target, triggers FROM lockfence.fences ORDER BY target::text",
	$node->safe_psql('src', "SELECT target, triggers FROM lockfence.fences
		WHERE target::text IN ('batch', 'job', 'doc') ORDER BY target::text"), '-t: guards fire always');
refused_ok($node, 'tables', $stale{$_}, 'LF005', "-t: sealed: $_") foreach ('named fence', 'new row', 'constant fence');
query_is($node, 'tables', "SELECT target, code FROM lockfence.verify() WHERE severity = 'error' ORDER BY target::text",
	"batch|not_on_record\njob|not_on_record", '-t: verify() tells');
$node->safe_psql('postgres', "CREATE DATABASE by_hand TEMPLATE tables");
query_is($node, 'by_hand', "SELECT lockfence.reconcile('batch')", 2, '-t: reconcile() raises the marks from the rows');
refused_ok($node, 'by_hand', $stale{$_}, 'LF001', "-t: and unseals: $_") foreach ('named fence', 'new row');

# ... with the record all the same, and so to be written to: the rows speak for the marks
$node->safe_psql('tables', q{INSERT INTO lockfence.fenced VALUES ('public.batch', '{}'), ('public.job', '{}'), ('public.doc', '{}')});
refused_ok($node, 'tables', "UPDATE batch SET fence = $t{15} WHERE item = 'b'", 'LF001',
	'-t: the token stored in the row stands in for the mark', qr/token stored in the row/);
refused_ok($node, 'tables', "BEGIN; SELECT lockfence.present($t{15}); DELETE FROM batch WHERE item = 'c'; COMMIT",
	'LF001', '-t: for DELETE as well');
refused_ok($node, 'tables', $stale{'row fence'}, 'LF001', '-t: a row fence has all it needs');
accepted_ok($node, 'tables', "BEGIN; $stale{'new row'}; ROLLBACK",
	'-t: but a new row knows nothing of the other rows');
query_is($node, 'tables', $ERRORS, "batch|marks_missing|SELECT lockfence.reconcile('public.batch');", '-t: verify() tells');
mended_ok('tables', '-t');
query_is($node, 'tables', $MARKS, "batch-1|$t{20}\nbatch-2|$t{20}", '-t: to the highest of them');
refused_ok($node, 'tables', $stale{$_}, 'LF001', "-t: then a stale token is refused: $_")
  foreach ('named fence', 'new row');
query_is($node, 'tables', "SELECT lockfence.reconcile('batch'), lockfence.reconcile('doc'), lockfence.reconcile('job')",
	'0|0|0', '-t: reconcile() has no more to do');

# ---- a schema alone (-n): the same

dump_to('public.sql', '-n', 'public');
new_database('public_only', 'DROP SCHEMA public; CREATE EXTENSION lockfence');
is(restore('public_only', 'public.sql'), '', '-n: restores without a word');
same_ok('public_only', 'fences', $FENCES, '-n');
query_is($node, 'public_only', $MARKS, '', '-n: no marks');
query_is($node, 'public_only', "SELECT target, code FROM lockfence.verify() WHERE severity = 'error' ORDER BY target::text",
	join("\n", map { "$_|not_on_record" } (q{"It's odd"}, 'batch', 'job', 'part', 'tally')), '-n: verify() tells');
$node->safe_psql('public_only', 'SELECT lockfence.reconcile(target) FROM lockfence.fences WHERE NOT on_record');
query_is($node, 'public_only', $ERRORS, '', '-n: and reconcile() mends it');
refused_ok($node, 'public_only', $stale{$_}, 'LF001', "-n: stale token is refused: $_")
  foreach ('partitioned table', 'partition');

# ---- one table out of an archive (pg_restore -t): without its triggers, too

dump_to('whole.custom', '-Fc');
new_database('bare', 'CREATE EXTENSION lockfence');
$node->command_ok([ 'pg_restore', '-e', '-t', 'batch', '-t', 'job', '-d', 'bare', "$dir/whole.custom" ], 'pg_restore -t: restores');
query_is($node, 'bare', "SELECT target, code FROM lockfence.verify() WHERE severity = 'error'", 'batch|guard_missing',
	'pg_restore -t: verify() finds the table that has a token column and no guard');
query_is($node, 'bare', 'SELECT remedy, advice FROM lockfence.verify() WHERE target = $$batch$$::regclass',
	'|Fence public.batch by lockfence.attach(), with the resource that its lock is named by.', 'pg_restore -t: and says that it takes a decision');
query_is($node, 'bare', "SELECT code FROM lockfence.verify('job') WHERE severity = 'error'", 'guard_missing', 'pg_restore -t: and the other, if asked for it');

# ---- the data alone (-a), into a schema that is live

dump_to('data.sql', '-a');
like(restore('live', 'data.sql', '-1'), qr/ERROR:  LF00[1256]:/, '-a: rows are refused as any write');
query_is($node, 'live', $ROWS, '', '-a: and in one transaction, none of them is there');

$ENV{PGOPTIONS} = '-c lockfence.bypass=on';
is(restore('live_bypass', 'data.sql', '-1'), '', '-a by bypass: restores without a word');
delete $ENV{PGOPTIONS};
all_restored('live_bypass', '-a by bypass');
ok($node->log_contains(qr/fence of table "batch" is bypassed/), '-a by bypass: the bypass is logged');

# ... that has marks, an epoch and a log of its own: the higher of two counts
$node->safe_psql('live_marks', qq{
	SELECT lockfence.set_epoch(1, 'own reason');
	SELECT lockfence.present('gone', $t{10});
	SELECT lockfence.prune('0');
	SELECT lockfence.present('batch-1', $t{30}), lockfence.present('batch-2', $t{10}), lockfence.present('own', $t{15});
});
$ENV{PGOPTIONS} = '-c lockfence.bypass=on';
is(restore('live_marks', 'data.sql', '-1'), '', '-a over marks: restores without a word');
delete $ENV{PGOPTIONS};
same_ok('live_marks', 'rows', $ROWS, '-a over marks');
query_is($node, 'live_marks', q{SELECT resource, lockfence.token_revision(token) FROM lockfence.mark
	WHERE resource ~ 'batch|own' ORDER BY 1}, "batch-1|30\nbatch-2|20\nown|15", '-a over marks: the higher mark counts');
query_is($node, 'live_marks', $STATE, "epoch|1\nfloor|$t{10}", '-a over marks: and the higher epoch and floor');
query_is($node, 'live_marks', 'SELECT reason FROM lockfence.admin_log WHERE reason ~ $$reason$$ ORDER BY 1',
	"a reason\nanother reason\nown reason", '-a over marks: both logs are there');
accepted_ok($node, 'live_marks', "SELECT lockfence.raise_mark('later', $t{40}, 'test')", '-a over marks: log goes on');
stale_refused('live_marks', '-a over marks');

# ... and with --disable-triggers, which leaves them enabled as ordinary triggers
dump_to('origin.sql', '-a', '--disable-triggers');
is(restore('live_origin', 'origin.sql', '-1'), '', '--disable-triggers: restores without a word');
same_ok('live_origin', 'marks', $MARKS, '--disable-triggers');
same_ok('live_origin', 'epoch and floor', $STATE, '--disable-triggers');
same_ok('live_origin', 'rows', $ROWS, '--disable-triggers');
stale_refused('live_origin', '--disable-triggers');
like($node->safe_psql('live_origin', "SELECT triggers FROM lockfence.fences WHERE target = 'batch'::regclass"),
	qr/"~lockfence_row": "origin"/, '--disable-triggers: lockfence.fences shows what it left behind');
refused_ok($node, 'live_origin', qq{SELECT lockfence.guarded_update('batch', '{"id": 1}', '{"note": "x"}', $t{20})},
	'55000', '--disable-triggers: guarded_update() does not trust such a guard');
query_is($node, 'live_origin', "SELECT DISTINCT target::text, code FROM lockfence.verify()
	WHERE severity = 'error' AND target::text IN ('batch', 'job', 'doc', 'part', 'part_1') ORDER BY 1",
	join("\n", map { "$_|guard_not_always" } ('batch', 'doc', 'job', 'part_1')),
	'--disable-triggers: verify() tells');
mended_ok('live_origin', '--disable-triggers');
query_is($node, 'live_origin', "SELECT tgname FROM pg_trigger WHERE tgname LIKE '~lockfence%' AND tgenabled <> 'A'",
	'', '--disable-triggers: all of it');
same_ok('live_origin', 'fences', $FENCES, '--disable-triggers, mended');

# ... in parallel, out of an archive
dump_to('data.dir', '-Fd', '-j2', '-a');
$ENV{PGOPTIONS} = '-c lockfence.bypass=on';
$node->command_ok([ 'pg_restore', '-e', '-j2', '-a', '-d', 'live_parallel', "$dir/data.dir" ], '-a -j by bypass: restores');
delete $ENV{PGOPTIONS};
all_restored('live_parallel', '-a -j by bypass');
$node->command_ok([ 'pg_restore', '-e', '-j2', '-a', '--disable-triggers', '-d', 'live_both', "$dir/data.dir" ],
	'-a -j --disable-triggers: restores');
mended_ok('live_both', '-a -j --disable-triggers');
all_restored('live_both', '-a -j --disable-triggers');

# ---- as an ordinary role

$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN');
$node->safe_psql('src', q{
	CREATE TABLE own (id int);
	ALTER TABLE own OWNER TO owner;
	GRANT SELECT ON ALL TABLES IN SCHEMA public TO owner;
});
$node->command_checks_all([ 'pg_dump', '-U', 'owner', '-d', 'src' ], 1, [qr//], [qr/(permission denied for|failed to get data for) (table|sequence) "?admin_log/],
	'an ordinary role cannot dump the log, and no dump is silently without it');
$node->safe_psql('src', "SELECT lockfence.attach('own', 'own')");
$node->command_like([ 'pg_dump', '-U', 'owner', '-t', 'own', '-d', 'src' ],
	qr/ENABLE ALWAYS TRIGGER "~lockfence_statement"/, 'but its own table, with the fence');
if (server_version($node) >= 14)
{
	$node->safe_psql('postgres', 'CREATE ROLE reader LOGIN IN ROLE pg_read_all_data');
	$node->command_ok([ 'pg_dump', '-U', 'reader', '-f', "$dir/reader.sql", '-d', 'src' ],
		'a member of pg_read_all_data dumps all of it');
	new_database('by_reader');
	is(restore('by_reader', 'reader.sql'), '', 'by a reader: restores without a word');
	all_restored('by_reader', 'by a reader');
}

done_testing();
