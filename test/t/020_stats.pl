# Statistics where a single session cannot show them: across sessions, databases and restarts, with memory
# that is too small, in the server's log, and in a server that does not preload the library.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Fields of the CSV log as they are named in the JSON log, which came with 15.
my %CSV = (pid => 3, error_severity => 11, state_code => 12, message => 13, statement => 19, application_name => 22);

# A line of the CSV log.  What is empty is not there.
sub csv_entry
{
	my ($line) = @_;
	my @values = map { s/^"(.*)"$/$1/sr =~ s/""/"/gr } $line =~ /("(?:[^"]|"")*"|[^,\n]*)[,\n]/g;

	return { map { $_ => $values[ $CSV{$_} ] } grep { $values[ $CSV{$_} ] ne '' } keys %CSV };
}

# The entries of the server's log from an offset on.
sub log_entries
{
	my ($node, $offset) = @_;
	my $files = slurp_file($node->data_dir . '/current_logfiles');
	my ($json) = $files =~ /^jsonlog (.*)$/m;
	my ($csv) = $files =~ /^csvlog (.*)$/m;
	my $log = substr(slurp_file($node->data_dir . '/' . ($json // $csv)), $offset);

	return (length($log) + $offset, map { decode_json($_) } split(/\n/, $log)) if defined $json;
	return (length($log) + $offset, map { csv_entry($_) } $log =~ /((?:"(?:[^"]|"")*"|[^"\n])*\n)/g);
}

# The fields of a refusal's line.
sub fields
{
	my ($message) = @_;
	my %field;

	$message =~ s/^fence refusal: // or return;
	while ($message =~ /\G(\w+)=("(?:[^"\\]|\\.)*"|[^ "]+)(?: |\z)/g)
	{
		$field{$1} = JSON::PP->new->allow_nonref->decode($2) if substr($2, 0, 1) eq '"';
		$field{$1} //= $2;
	}
	return \%field;
}

my $node = fenced_node('preloaded', <<'CONF');
shared_preload_libraries = 'lockfence'
lockfence.max_tables = 8
lockfence.max_refusals = 16
lockfence.log_refusals = 3
logging_collector = on
log_destination = 'csvlog'
log_min_messages = warning
CONF
if (server_version($node) >= 15)
{
	$node->append_conf('postgresql.conf', "log_destination = 'csvlog, jsonlog'");
	$node->restart;
}

# ---- what one session counts, others see; the database's own tables only

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE item (id int PRIMARY KEY, v int DEFAULT 0);
SELECT lockfence.attach('item', 'item/{id}', 'fence');
INSERT INTO item VALUES (1, 0, 20);
SQL
refused_ok($node, 'postgres', 'UPDATE item SET fence = 10', 'LF001', 'a stale write');
query_is($node, 'postgres', 'SELECT target, accepted, stale FROM lockfence.stats', 'item|1|1',
	'another session sees both counts');
query_is($node, 'postgres', 'SELECT database, target, code, resource, token, mark, role, client_addr IS NULL FROM lockfence.refusals',
	'postgres|item|LF001|item/1|10|20|postgres|t', 'and the refusal');

$node->safe_psql('postgres', 'SELECT lockfence.stats_reset()');
query_is($node, 'postgres', q(SELECT (SELECT sum(accepted + stale) FROM lockfence.stats), (SELECT count(*) FROM lockfence.refusals), refusals
	FROM lockfence.stats_info()), '0|0|0', 'stats_reset() forgets all of it');
refused_ok($node, 'postgres', 'UPDATE item SET fence = 10', 'LF001', 'a stale write again');

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION lockfence');
query_is($node, 'other', 'SELECT count(*) FROM lockfence.stats', '0', 'another database has counters of its own');
query_is($node, 'other', 'SELECT database, target, token FROM lockfence.refusals', 'postgres||10',
	'the ring is of all databases');

# ---- nothing is lost among sessions that count at once

$node->safe_psql('postgres', 'SELECT lockfence.stats_reset(); INSERT INTO item SELECT g, 0, 20 FROM generate_series(2, 5) g');
$node->pgbench('-n -c 4 -t 200', 0, [qr/processed: 800\/800/], [qr/^$/], 'writers at once',
	{ '020_writers' => "UPDATE item SET v = v + 1, fence = 20 WHERE id = 1 + :client_id;
" });
query_is($node, 'postgres', 'SELECT accepted, advanced FROM lockfence.stats', '804|4', 'every write was counted');

# ---- the log

my $csv_name = (slurp_file($node->data_dir . '/current_logfiles') =~ /^csvlog (.*)$/m)[0];
my ($offset, @entries) = log_entries($node, 0);
$node->safe_psql('postgres', 'SELECT lockfence.stats_reset()');
my $csv_offset = -s $node->data_dir . "/$csv_name";
refused_ok($node, 'postgres', 'UPDATE item SET fence = 11 WHERE id = 1', 'LF001', "refusal $_") for 1 .. 5;

sub refusals_logged { return grep { ($_->{state_code} // '') =~ /^LF/ } @_ }

sub wait_for_entries
{
	my ($node, $from, $count) = @_;
	my @found;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		(undef, @found) = log_entries($node, $from);
		@found = refusals_logged(@found);
		last if @found >= $count;
		select(undef, undef, undef, 0.1);
	}
	return @found;
}
$node->safe_psql('postgres', q(SET lockfence.log_refusals = -1; DO $$ BEGIN UPDATE item SET fence = 12 WHERE id = 1;
	EXCEPTION WHEN OTHERS THEN NULL; END $$));
my @logged = wait_for_entries($node, $offset, 7);
is(scalar(grep { $_->{error_severity} eq 'LOG' } @logged), 4, 'three of five refusals have a line, and the one that may');
is(scalar(grep { $_->{error_severity} eq 'ERROR' } @logged), 3, 'and the errors of the others are not logged either');

my $field = fields($logged[0]->{message});
is_deeply({ %$field, pid => $field->{pid} == $logged[0]->{pid} ? 'same' : 'other' },
	{ code => 'LF001', action => 'refused', schema => 'public', table => 'item', resource => 'item/1',
		token => '11', mark => '20', role => 'postgres', application => $logged[0]->{application_name},
		client => 'null', pid => 'same', suppressed => 0 },
	'all fields are in the line');
is($logged[0]->{state_code}, 'LF001', 'the SQLSTATE is a field of the log format, too');
ok(!exists $logged[0]->{statement}, 'without the statement');
like(slurp_file($node->data_dir . "/$csv_name", $csv_offset),
	qr/,LOG,LF001,"fence refusal: code=LF001 action=refused schema=""public"" table=""item"" resource=""item\/1"" token=""11"" mark=""20"" /,
	'the CSV log has the same line');
is(fields((grep { $_->{error_severity} eq 'LOG' } @logged)[3]->{message})->{suppressed}, 0, 'no limit, no suppressed count');

# Another session, whose window is not full, tells what was held back.
($offset) = log_entries($node, $offset);
$node->safe_psql('postgres', q(SET lockfence.log_refusals = 100; DO $$ BEGIN UPDATE item SET fence = 13 WHERE id = 1;
	EXCEPTION WHEN OTHERS THEN NULL; END $$));
@logged = wait_for_entries($node, $offset, 1);
is(fields($logged[0]->{message})->{suppressed}, 2, 'the next line tells how many were suppressed');

# Names cannot break a line up, nor fake a field; a token keeps its digits.
$node->safe_psql('postgres', <<'SQL');
CREATE SCHEMA "s "" x=1";
CREATE TABLE "s "" x=1".E (id text PRIMARY KEY);
ALTER TABLE "s "" x=1".E RENAME TO "new
line";
SELECT lockfence.attach('"s "" x=1"."new
line"', '{id}', 'fence');
SQL
($offset) = log_entries($node, $offset);
$node->safe_psql('postgres', q(SET application_name = 'a" b=2';
	DO $$ BEGIN INSERT INTO "s "" x=1"."new
line" VALUES (E'r"\nx=3 token="1"', 9223372036854775807), (E'r"\nx=3 token="1"', 9223372036854775806);
	EXCEPTION WHEN OTHERS THEN NULL; END $$));
@logged = wait_for_entries($node, $offset, 1);
$field = fields($logged[0]->{message});
unlike($logged[0]->{message}, qr/\n/, 'one line');
is(join('|', map { $field->{$_} } qw(schema table resource application token mark)),
	qq(s " x=1|new\nline|r"\nx=3 token="1"|a" b=2|9223372036854775806|9223372036854775807), 'hostile names come through');

# An advisory fence reports by such lines only, and by as few.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE tried (id int PRIMARY KEY);
SELECT lockfence.attach('tried', 'tried/{id}', 'fence', enforcement => 'advisory');
SQL
($offset) = log_entries($node, $offset);
$node->safe_psql('postgres', 'INSERT INTO tried SELECT generate_series(1, 100)');
query_is($node, 'postgres', q(SELECT advisory, log_suppressed FROM lockfence.stats WHERE target = 'tried'::regclass), '100|97',
	'reports of an advisory fence are limited');
$node->safe_psql('postgres', q(SET lockfence.log_refusals = -1; INSERT INTO tried VALUES (101)));
@logged = wait_for_entries($node, $offset, 4);
is(scalar(@logged), 4, 'one line a report');
is(scalar(grep { /^fence refusal: code=LF002 action=reported / } map { $_->{message} } @logged), 4, 'in the same form');

# ---- a full ring, a full table

$node->safe_psql('postgres', 'SELECT lockfence.stats_reset()');
$node->safe_psql('postgres', q(DO $$ BEGIN
	FOR t IN 1 .. 19 LOOP
		BEGIN UPDATE item SET fence = t WHERE id = 1; EXCEPTION WHEN SQLSTATE 'LF001' THEN NULL; END;
	END LOOP; END $$));
query_is($node, 'postgres', 'SELECT count(*), min(token), max(token), (array_agg(token))[1] FROM lockfence.refusals',
	'16|4|19|19', 'the ring keeps the last, newest first');
query_is($node, 'postgres', 'SELECT refusals, overwritten, max_refusals FROM lockfence.stats_info()', '19|3|16',
	'and counts what was overwritten');
$node->restart;
query_is($node, 'postgres', 'SELECT count(*) FROM lockfence.stats', '0', 'a restart starts anew');
for my $i (1 .. 9)
{
	$node->safe_psql('postgres', "CREATE TABLE t$i (id int PRIMARY KEY); SELECT lockfence.attach('t$i', 't$i/{id}', 'fence');");
	$node->safe_psql('postgres', 'UPDATE t1 SET fence = 1') if $i == 9;
	$node->safe_psql('postgres', "INSERT INTO t$i VALUES (1, 1)");
}
query_is($node, 'postgres', q(SELECT string_agg(target::text, ' ' ORDER BY target::text) FROM lockfence.stats),
	join(' ', map { "t$_" } 1, 3 .. 9), 'the table that counted longest ago gave way');
query_is($node, 'postgres', 'SELECT max_tables, tables, evicted FROM lockfence.stats_info()', '8|8|1', 'and that is counted');
$node->stop;

# ---- a server that does not preload the library

my $bare = fenced_node('bare', "lockfence.max_tables = 16\nlockfence.log_refusals = 3\n");
my $has_registry = $bare->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
$bare->safe_psql('postgres', <<'SQL');
CREATE TABLE item (id int PRIMARY KEY);
SELECT lockfence.attach('item', 'item/{id}', 'fence');
INSERT INTO item VALUES (1, 20);
SQL
my $log_start = -s $bare->logfile;
my (undef, $refused) = try_sql($bare, 'postgres', 'UPDATE item SET fence = 10;' x 5, on_error_stop => 0);
is(scalar(() = $refused =~ /ERROR:  LF001/g), 5, 'fences need no memory');
query_is($bare, 'postgres', 'SELECT available FROM lockfence.stats_info()', $has_registry ? 't' : 'f', 'what there is');
query_is($bare, 'postgres', 'SELECT count(*) FROM lockfence.stats', $has_registry ? 1 : 0, 'counters');
query_is($bare, 'postgres', 'SELECT count(*) FROM lockfence.refusals', $has_registry ? 5 : 0, 'the ring');
my @lines = slurp_file($bare->logfile, $log_start) =~ /(LOG|ERROR):  (?:fence refusal|stale)/g;
is(join(' ', @lines), 'LOG ERROR LOG ERROR LOG ERROR', 'lines are limited in each session at least');
query_is($bare, 'postgres', q(LOAD 'lockfence'; SHOW lockfence.max_tables), '1024', 'sizes are not for a running server');

# As pg_upgrade does it, and whatever a role has set before.
$bare->safe_psql('template1', q(CREATE ROLE another LOGIN));
accepted_ok($bare, 'template1', q(LOAD 'lockfence'), 'the library loads where there is no extension');
accepted_ok($bare, 'postgres', q(SET lockfence.max_tables = 8; SET lockfence.max_refusals = 8; SET lockfence.track = off;
	SET lockfence.bypass = on; SELECT lockfence.is_current('x', 1)), 'settings from before it is loaded are no error');
$bare->stop;

done_testing();
