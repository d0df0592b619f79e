# A mark, or the index of the marks, that is lost or corrupted: nothing is accepted that should not be.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $PAGE = 8192;
my $node = fenced_node('corruption', "full_page_writes = off\n");

$node->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}');
	SELECT lockfence.present('batch-1', 18);
	SELECT lockfence.present('batch-1', 19);
	BEGIN; SELECT lockfence.present(20); INSERT INTO batch SELECT generate_series(1, 5); COMMIT;
});
# now the index leads to batch-1 by way of a pointer within the page, as to most marks that were advanced
$node->safe_psql('postgres', 'VACUUM lockfence.mark');

# ---- what must hold

# refused_for_damage(CODE, WHAT): neither the holder nor a zombie, nor one with a new grant, comes in.
sub refused_for_damage
{
	my ($code, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	refused_ok($node, 'postgres', "SELECT lockfence.present('batch-1', 19)", $code, "$what: a stale token is refused");
	refused_ok($node, 'postgres', "SELECT lockfence.present('batch-1', 20)", $code, "$what: so is the current one");
	refused_ok($node, 'postgres', "SELECT lockfence.present('batch-1', 21)", $code, "$what: and a higher one");
	refused_ok($node, 'postgres', q{BEGIN; SELECT lockfence.present(19); UPDATE batch SET note = 'stale' WHERE id = 1; COMMIT},
		$code, "$what: a write is refused");
	refused_ok($node, 'postgres', q{SELECT lockfence.guarded_update('batch', '{"id": 1}', '{"note": "stale"}', 19)},
		$code, "$what: so is a guarded one");
	refused_ok($node, 'postgres', q{SELECT lockfence.raise_mark('batch-1', 30, 'test')}, $code,
		"$what: no administrator raises the mark by accident");
	query_is($node, 'postgres', q{SELECT count(*) FROM batch WHERE note = 'stale'}, 0, "$what: nothing was written");
	return;
}

sub works
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	refused_ok($node, 'postgres', "SELECT lockfence.present('batch-1', 19)", 'LF001', "$what: a stale token is refused");
	query_is($node, 'postgres', "SELECT lockfence.present('batch-1', 20)", 20, "$what: the current one is accepted");
	return;
}

# ---- the index is not what it should be

# A session that has used the index must notice as well, whenever it has to read.  It need not where its token equals a mark in the
# shared cache, which is right whatever the index is like by now; a name as long as this one's is never there.
my $LONG = 'long-' . '-' x 95;
my $old = session($node, 'postgres');
ask($old, "SELECT lockfence.present('$LONG', 20)");
is(ask($old, "SELECT lockfence.present('$_', 20)"), 20, 'a session has used the marks') foreach ('batch-1', $LONG);

my $MARKS = q{indexrelid = 'lockfence.mark_pkey'::regclass};
foreach my $flag ('indisvalid', 'indisready')
{
	$node->safe_psql('postgres', "UPDATE pg_index SET $flag = false WHERE $MARKS");
	refused_for_damage('55000', "index without $flag");
	like(ask($old, "SELECT lockfence.present('batch-1', $_)"), qr/ERROR:  55000:/,
		"index without $flag: a session that knew it notices, with $_") foreach (19, 21);
	like(ask($old, "SELECT lockfence.present('$LONG', 20)"), qr/ERROR:  55000:/,
		"index without $flag: so it does with the current token, where that is not cached");
	$node->safe_psql('postgres', "UPDATE pg_index SET $flag = true WHERE $MARKS");
	works("index with $flag again");
}

$node->safe_psql('postgres', 'ALTER TABLE lockfence.mark DROP CONSTRAINT mark_pkey');
$node->safe_psql('postgres', 'ALTER EVENT TRIGGER lockfence_after_ddl DISABLE');
refused_for_damage('42P01', 'no index');
$node->safe_psql('postgres', 'CREATE UNIQUE INDEX mark_pkey ON lockfence.mark (resource) WHERE token > 100');
refused_for_damage('55000', 'partial index');
$node->safe_psql('postgres', 'DROP INDEX lockfence.mark_pkey; CREATE UNIQUE INDEX mark_pkey ON lockfence.mark (advanced_at, resource)');
refused_for_damage('55000', 'index on other columns');
$node->safe_psql('postgres', 'DROP INDEX lockfence.mark_pkey; CREATE UNIQUE INDEX mark_pkey ON lockfence.state (name)');
refused_for_damage('55000', 'index of another table');
$node->safe_psql('postgres', q{
	DROP INDEX lockfence.mark_pkey; ALTER TABLE lockfence.mark ADD CONSTRAINT mark_pkey PRIMARY KEY (resource)});
works('primary key made again');
$node->safe_psql('postgres', 'ALTER EVENT TRIGGER lockfence_after_ddl ENABLE ALWAYS');

# REINDEX CONCURRENTLY that is interrupted leaves an index behind that is of no use.
my $writer = session($node, 'postgres');
ask($writer, "BEGIN; SELECT lockfence.present('batch-2', 21)");
my $reindex = session($node, 'postgres');
start_blocked($reindex, 'REINDEX INDEX CONCURRENTLY lockfence.mark_pkey');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($reindex->{pid})");
like(finish_blocked($reindex), qr/57014/, 'REINDEX CONCURRENTLY was interrupted');
query_is($node, 'postgres', q{SELECT count(*) FROM pg_index WHERE indrelid = 'lockfence.mark'::regclass AND NOT indisvalid}, 1,
	'and has left an invalid index');
works('interrupted REINDEX CONCURRENTLY');
ask($writer, 'COMMIT');
$_->{psql}->quit foreach ($old, $writer, $reindex);
$node->safe_psql('postgres', 'DROP INDEX lockfence.mark_pkey_ccnew');

# The hash index is a short cut only.  A session that knows it goes on while it goes, and comes.
my $knows = session($node, 'postgres');
is(ask($knows, "SELECT lockfence.present('batch-3', 20)"), 20, 'a session has used the hash index');
$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY lockfence.mark_hash');
is(ask($knows, "SELECT lockfence.present('batch-4', 20)"), 20, 'hash index made anew beside the old one');
$node->safe_psql('postgres', 'DROP INDEX CONCURRENTLY lockfence.mark_hash');
is(ask($knows, "SELECT lockfence.present('batch-5', 20)"), 20, 'hash index dropped');
like(ask($knows, "SELECT lockfence.present('batch-5', 19)"), qr/LF001/, 'and a stale token is refused');
$knows->{psql}->quit;
works('without the hash index');
$node->safe_psql('postgres', 'CREATE INDEX mark_hash ON lockfence.mark USING hash (resource)');

# ---- pages that are not what they should be

# file_of(RELATION)
sub file_of
{
	my ($relation) = @_;

	return $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$relation')");
}

# change(FILE, HOW): the server is down while HOW changes the contents.
sub change
{
	my ($file, $how) = @_;

	$node->stop;
	my $bytes = slurp_file($file);
	$how->(\$bytes);
	open(my $out, '>:raw', $file) or die "$file: $!";
	print $out $bytes;
	close($out) or die "$file: $!";
	$node->start;
	return;
}

# Where the version of a mark is: byte of its line pointer, and of the row itself.
sub place_of
{
	my ($bytes, $block, $item) = @_;
	my $pointer = $block * $PAGE + 24 + 4 * ($item - 1);
	my $row = $block * $PAGE + (unpack('L', substr($$bytes, $pointer, 4)) & 0x7fff);

	return ($pointer, $row);
}

# corrupt(WHAT, HOW): HOW is given the table's bytes, and where the mark of batch-1 is.
sub corrupt
{
	my ($what, $how) = @_;
	my $ctid = $node->safe_psql('postgres', "SELECT ctid FROM lockfence.mark WHERE resource = 'batch-1'");
	my $file = file_of('lockfence.mark');
	my $before;

	change($file, sub { my ($bytes) = @_; $before = $$bytes; $how->($bytes, place_of($bytes, $ctid =~ /(\d+)/g)); });
	refused_for_damage('XX001', $what);
	change($file, sub { ${ $_[0] } = $before; });
	works("$what, mended");
	return;
}

sub has_checksums
{
	my ($out) = run_command([ 'pg_controldata', $node->data_dir ]);

	return $out =~ /^Data page checksum version:\s+[1-9]/m;
}

# With checksums, which PostgreSQL 18 has from the start, most of these are found by PostgreSQL itself.
$node->stop;
system_or_bail('pg_checksums', '--disable', '-D', $node->data_dir) if has_checksums();
$node->start;

corrupt('zeroed page', sub { substr(${ $_[0] }, 0, $PAGE) = "\0" x $PAGE; });
corrupt('lost file', sub { ${ $_[0] } = ''; });
corrupt('zeroed line pointer', sub { my ($bytes, $pointer) = @_; substr($$bytes, $pointer, 4) = "\0" x 4; });
corrupt('zeroed row', sub { my ($bytes, undef, $row) = @_; substr($$bytes, $row, 32) = "\0" x 32; });
corrupt('zeroed token', sub { my ($bytes, undef, $row) = @_; substr($$bytes, $row + 24, 8) = "\0" x 8; });
corrupt('negative token', sub { my ($bytes, undef, $row) = @_; substr($$bytes, $row + 24, 8) = pack('q', -1); });
corrupt('another resource', sub { my ($bytes, undef, $row) = @_; $$bytes =~ s/batch-1/batch-X/g; });

my $index = file_of('lockfence.mark_pkey');
change($index, sub { substr(${ $_[0] }, $PAGE, $PAGE) = "\0" x $PAGE; });
refused_for_damage('XX002', 'zeroed page of the index');
$node->safe_psql('postgres', 'REINDEX INDEX lockfence.mark_pkey');
works('rebuilt index');

$index = file_of('lockfence.mark_pkey');
change($index, sub { ${ $_[0] } = ''; });
refused_for_damage('XX001', 'lost file of the index');
$node->safe_psql('postgres', 'REINDEX INDEX lockfence.mark_pkey');
works('index made again');

my $hash = file_of('lockfence.mark_hash');
change($hash, sub { substr(${ $_[0] }, 0, $PAGE) = "\0" x $PAGE; });
refused_for_damage('XX002', 'zeroed page of the hash index');
$node->safe_psql('postgres', 'REINDEX INDEX lockfence.mark_hash');
works('rebuilt hash index');

$hash = file_of('lockfence.mark_hash');
change($hash, sub { ${ $_[0] } = ''; });
refused_for_damage('XX001', 'lost file of the hash index');
$node->safe_psql('postgres', 'DROP INDEX lockfence.mark_hash');
works('dropped hash index');
$node->safe_psql('postgres', 'CREATE INDEX mark_hash ON lockfence.mark USING hash (resource)');

# ---- what docs/operations.md tells to do about it

change(file_of('lockfence.mark'), sub { substr(${ $_[0] }, 0, $PAGE) = "\0" x $PAGE; });
refused_ok($node, 'postgres', "SELECT lockfence.present('batch-1', 19)", 'XX001', 'the marks are lost');
query_is($node, 'postgres', "SELECT lockfence.present('batch-new', 1)", '', 'a new mark goes to the page that was lost');
refused_for_damage('XX001', 'page in use again');
$node->safe_psql('postgres', q{SELECT lockfence.reset_floor(20, 'marks lost'); REINDEX TABLE lockfence.mark});
refused_ok($node, 'postgres', "SELECT lockfence.present('batch-1', 19)", 'LF001', 'floor in place of the marks: a stale token is refused');
accepted_ok($node, 'postgres', "SELECT lockfence.present('batch-1', 20)", 'the current one is accepted');
query_is($node, 'postgres', "SELECT lockfence.present('batch-1', 21)", 20, 'and a new grant takes over');

done_testing();
