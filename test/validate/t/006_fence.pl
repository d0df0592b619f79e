# The lock service as a fence's validator: when it is asked, and what its answers do to a write.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ValidateTest;

my $POISON = '9223372036854775807';
my $node = validating_node('fence');
my $service = new_service();
configure($node, url => $service->url);
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE item (id int PRIMARY KEY, v int DEFAULT 0);
SELECT lockfence.attach('item', 'item', 'fence', validator => 'lockfence.validate(text, lockfence.fence_token)');
CREATE TABLE plain (id int PRIMARY KEY, v int DEFAULT 0);
SELECT lockfence.attach('plain', 'plain', 'fence');
SQL

# What the table and its mark say.
sub state_is
{
	my ($expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	query_is($node, 'postgres', "SELECT (SELECT string_agg(concat_ws(':', id, v, fence), ' ' ORDER BY id) FROM item),
		(SELECT token FROM lockfence.mark WHERE resource = 'item')", $expected, $name);
	return;
}

sub asked_is
{
	my ($expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($service->count('request'), $expected, $name);
	$service->forget;
	return;
}

sub counter
{
	my ($column) = @_;

	return $node->safe_psql('postgres', "SELECT $column FROM lockfence.stats WHERE target = 'item'::regclass");
}

# ---- once per grant

accepted_ok($node, 'postgres', 'INSERT INTO item SELECT g, 0, 10 FROM generate_series(1, 3) g', 'three rows by a first token');
asked_is(1, 'are one question');
accepted_ok($node, 'postgres', "UPDATE item SET v = v + 1, fence = 10 WHERE id = $_", 'the same token') for 1 .. 3;
my $writer = session($node, 'postgres');
unlike(ask($writer, "UPDATE item SET v = v + 1, fence = 10; SELECT lockfence.present('item', 10); UPDATE item SET v = v"), qr/ERROR:  LF00[^2]/,
	'however it is shown');
asked_is(0, 'is asked about no more');
refused_ok($node, 'postgres', 'UPDATE item SET fence = 9', 'LF001', 'an older token');
asked_is(0, 'is refused without asking');
unlike(ask($writer, "BEGIN; UPDATE item SET fence = 11; SAVEPOINT s; UPDATE item SET fence = 11; ROLLBACK TO s; UPDATE item SET fence = 11; COMMIT"),
	qr/ERROR/, 'a new token, in several statements');
asked_is(1, 'is one question');
is(counter('validator_calls'), 2, 'which the statistics count');

# ---- no

$service->mode('refused');
my $before = counter('unvalidated');
refused_ok($node, 'postgres', 'UPDATE item SET v = 100, fence = 12 WHERE id = 1', 'LF007', 'the service says no', qr/lockfence\.validate|validator/);
refused_ok($node, 'postgres', "INSERT INTO item VALUES (4, 0, $POISON)", 'LF007', 'it has never granted the highest token there is');
refused_ok($node, 'postgres', "BEGIN; SELECT lockfence.present($POISON); DELETE FROM item; COMMIT", 'LF007', 'presented or not');
state_is('1:2:11 2:2:11 3:2:11|11', 'nothing has changed');
is(counter('unvalidated') - $before, 3, 'which the statistics count');
asked_is(3, 'it was asked each time');
accepted_ok($node, 'postgres', 'UPDATE item SET v = v, fence = 11', 'the holder goes on');
asked_is(0, 'and the service is not asked');

# ---- no answer

$service->mode('503');
$before = counter('unavailable');
refused_ok($node, 'postgres', 'UPDATE item SET v = 100, fence = 12 WHERE id = 1', 'LF008', 'the service has no answer', qr/503/);
state_is('1:2:11 2:2:11 3:2:11|11', 'nothing has changed');
is(counter('unavailable') - $before, 1, 'which the statistics count');
query_is($node, 'postgres', 'SELECT code, resource, token FROM lockfence.refusals LIMIT 1', 'LF008|item|12', 'and the refusals show');
accepted_ok($node, 'postgres', 'UPDATE item SET v = v, fence = 11', 'the holder goes on in an outage');
$service->forget;

# ---- never with the mark locked

$service->mode('silent');
start($writer, 'UPDATE item SET v = 50, fence = 13 WHERE id = 1');
$service->wait_for('request');
wait_for_call($writer);
query_is($node, 'postgres', "SELECT count(*) FROM pg_locks WHERE pid = $writer->{pid} AND locktype IN ('advisory', 'tuple')", '0',
	'who waits for the service holds no lock of the resource');
query_is($node, 'postgres', "SELECT count(*) FROM pg_locks WHERE pid = $writer->{pid} AND relation = 'lockfence.mark'::regclass AND mode <> 'AccessShareLock'", '0',
	'or of its mark');
my $timeout = "SET lock_timeout = '60s'";
accepted_ok($node, 'postgres', "$timeout; UPDATE item SET v = 4, fence = 11 WHERE id = 2", 'the holder writes meanwhile');
accepted_ok($node, 'postgres', "$timeout; SELECT lockfence.raise_mark('item', 12, 'test')", 'and the mark can go up meanwhile');
$service->mode('valid');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($writer->{pid})");
like(finish($writer), qr/57014/, 'it is cancelled');
state_is('1:2:11 2:4:11 3:2:11|12', 'and has changed nothing');

# The service says yes, and another holder has overtaken in the meantime: the mark decides.
$service->mode(slow => 1500);
$service->forget;
start($writer, 'UPDATE item SET v = 50, fence = 13 WHERE id = 1');
$service->wait_for('request');
$node->safe_psql('postgres', "SELECT lockfence.raise_mark('item', 20, 'test')");
like(finish($writer), qr/ERROR:  LF001:/, 'a yes does not outweigh the mark');
state_is('1:2:11 2:4:11 3:2:11|20', 'which decides');

# ---- other fences, and none

$service->mode('valid');
$service->forget;
accepted_ok($node, 'postgres', 'INSERT INTO plain VALUES (1, 0, 5)', 'a fence without a validator');
accepted_ok($node, 'postgres', "SELECT lockfence.present('unfenced:s', 5)", 'a resource without a fence');
asked_is(0, 'asks no service');

# ---- the default validator

$node->append_conf('postgresql.conf', "lockfence.validator = 'lockfence.validate(text, lockfence.fence_token)'\n");
configure($node, url => $service->url);
$service->mode('refused');
refused_ok($node, 'postgres', "SELECT lockfence.present('fresh', $POISON)", 'LF007', 'with a default validator a poisoned token is refused');
mark_is($node, 'postgres', 'fresh', '', 'and leaves no mark');
refused_ok($node, 'postgres', "SELECT lockfence.present('unfenced:s', $POISON)", 'LF007', 'also where there is a mark');
mark_is($node, 'postgres', 'unfenced:s', '5', 'which stays');
refused_ok($node, 'postgres', "UPDATE plain SET v = 1, fence = $POISON", 'LF007', 'and on a fence without one of its own');
asked_is(3, 'each is one question');
accepted_ok($node, 'postgres', "SELECT lockfence.present('unfenced:s', 5)", 'an equal token passes');
refused_ok($node, 'postgres', "SELECT lockfence.present('unfenced:s', 4)", 'LF001', 'a lower one does not');
asked_is(0, 'and neither is asked about');
$service->mode('valid');
query_is($node, 'postgres', "SELECT lockfence.present('unfenced:s', 6)", '5', 'a token that was granted');
asked_is(1, 'is one question');
$service->mode('503');
refused_ok($node, 'postgres', "SELECT lockfence.present('unfenced:s', 7)", 'LF008', 'an outage');
mark_is($node, 'postgres', 'unfenced:s', '6', 'leaves the mark');
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA lockfence TO app; GRANT EXECUTE ON FUNCTION lockfence.present(text, lockfence.fence_token) TO app');
my $app = $node->connstr('postgres') . ' user=app';
like((try_sql($node, 'postgres', "SET lockfence.validator = ''; SELECT lockfence.present('fresh', 1)", connstr => $app, on_error_stop => 0))[1],
	qr/ERROR:  42501:.*ERROR:  LF00[78]:/s, 'an application cannot set it aside, and need not be allowed to call it');

# ---- open

configure($node, url => $service->url, on_unavailable => 'open');
my ($opened, $logged) = (counter('validator_open'), open_lines());
accepted_ok($node, 'postgres', 'UPDATE item SET v = 7, fence = 21 WHERE id = 1', 'open: a write passes in an outage');
accepted_ok($node, 'postgres', 'UPDATE item SET v = 7, fence = 22 WHERE id = 1', 'and the next');
is(counter('validator_open') - $opened, 2, 'which is counted each time')
  or diag($node->safe_psql('postgres', 'SELECT * FROM lockfence.stats'));
is(open_lines() - $logged, 2, 'and logged');
$service->mode('refused');
refused_ok($node, 'postgres', 'UPDATE item SET v = 8, fence = 23 WHERE id = 1', 'LF007', 'open: a no is a no');
$service->mode('valid');
accepted_ok($node, 'postgres', 'UPDATE item SET v = 8, fence = 23 WHERE id = 1', 'and a yes a yes');
is(open_lines() - $logged, 2, 'without a line in the log');
configure($node, on_unavailable => 'open');
refused_ok($node, 'postgres', 'UPDATE item SET v = 9, fence = 24 WHERE id = 1', 'LF008', 'open is not for a server that is not set up');

sub open_lines
{
	return scalar(() = slurp_file($node->logfile) =~ /LOG:  .* passes without an answer of the lock service/g);
}

$node->stop;
done_testing();
