# What is left of the one refusal that matters under a flood of others, and after it; and offenders that are
# counted by sessions at once, or are too many.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $FLOOD = 50_000;

my $node = fenced_node('flood', <<'CONF');
shared_preload_libraries = 'lockfence'
lockfence.max_refusals = 64
lockfence.max_offenders = 16
CONF

# flood(STATEMENT, N): a statement that is refused, so often, in one transaction
sub flood
{
	my ($statement, $n) = @_;

	return "DO \$\$ BEGIN FOR i IN 1 .. $n LOOP
		BEGIN $statement; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END \$\$";
}

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE batch (id int PRIMARY KEY, state text);
CREATE TABLE tried (id int);
SELECT lockfence.attach('batch', 'batch/{id}', 'fence');
SELECT lockfence.attach('tried', 'tried/{id}', 'fence', enforcement => 'advisory');
INSERT INTO batch VALUES (1, '', 42);
INSERT INTO tried VALUES (0, 42);
SELECT lockfence.present('batch/1', 43);
SQL

# ---- one stale write amid a hundred thousand that present no token

my $log_start = -s $node->logfile;
my $nightly = "SET application_name = 'nightly'";
$node->safe_psql('postgres', "$nightly; " . flood('UPDATE batch SET state = $q$n$q$', $FLOOD));
refused_ok($node, 'postgres', q(SET application_name = 'worker 7'; UPDATE batch SET state = 'late', fence = 42), 'LF001', 'the zombie writes');
$node->safe_psql('postgres', "$nightly; " . flood('UPDATE batch SET state = $q$n$q$', $FLOOD));
query_is($node, 'postgres', 'SELECT stale, missing FROM lockfence.stats WHERE target IS NOT NULL ORDER BY 1 DESC', "1|100000\n0|0",
	'one among a hundred thousand');
query_is($node, 'postgres', q(SELECT application_name, resource, token, mark FROM lockfence.refusals WHERE code = 'LF001'),
	'worker 7|batch/1|42|43', 'it is in the ring');
query_is($node, 'postgres', q(SELECT application_name, target, role, refused, resource, token, mark, first_at = last_at
	FROM lockfence.offenders WHERE code = 'LF001'), 'worker 7|batch|postgres|1|batch/1|42|43|t', 'among the offenders');
like(slurp_file($node->logfile, $log_start), qr/fence refusal: code=LF001 [^\n]* application="worker 7"/, 'and in the log');
query_is($node, 'postgres', q(SELECT application_name, refused, resource, token IS NULL FROM lockfence.offenders WHERE code = 'LF002'),
	'nightly|100000|batch/1|t', 'the flood is one offender');
query_is($node, 'postgres', q(SELECT kept, used, evicted FROM lockfence.stats_limits() WHERE kept LIKE '%refusals%'),
	"refusals of stale tokens|1|0\nother refusals|64|99936", 'and what fell out of its ring is counted');
query_is($node, 'postgres', 'SELECT refusals, overwritten, max_refusals FROM lockfence.stats_info()', '100001|99936|64', 'stats_info() has all');

# The same on an advisory fence, which refuses none of them.
$node->safe_psql('postgres', "$nightly; INSERT INTO tried SELECT generate_series(1, $FLOOD)");
$node->safe_psql('postgres', q(SET application_name = 'worker 8'; UPDATE tried SET fence = 41 WHERE id = 0));
$node->safe_psql('postgres', "$nightly; INSERT INTO tried SELECT generate_series(1, $FLOOD)");
query_is($node, 'postgres', q(SELECT application_name, resource, token, mark FROM lockfence.refusals WHERE code = 'LF001' AND advisory),
	'worker 8|tried/0|41|42', 'a stale write that passed is in the ring');
query_is($node, 'postgres', q(SELECT code, application_name, refused, reported FROM lockfence.offenders WHERE target = 'tried'::regclass ORDER BY 1),
	"LF001|worker 8|0|1\nLF002|nightly|0|100000", 'and among the offenders');
like(slurp_file($node->logfile, $log_start), qr/code=LF001 action=reported [^\n]* application="worker 8"/, 'and in the log');

# A flood of offenders, each under a name of its own.
$node->safe_psql('postgres', <<'SQL');
DO $$ BEGIN FOR i IN 1 .. 1000 LOOP
	PERFORM set_config('application_name', 'job ' || i, true);
	BEGIN DELETE FROM batch; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$;
SQL
query_is($node, 'postgres', q(SELECT string_agg(application_name, ' ' ORDER BY application_name) FROM lockfence.offenders WHERE code = 'LF001'),
	'worker 7 worker 8', 'a thousand other offenders have not replaced those of stale tokens');
query_is($node, 'postgres', q(SELECT kept, capacity, used, evicted FROM lockfence.stats_limits() WHERE kept LIKE '%offenders%'),
	"offenders by stale tokens|16|2|0\nother offenders|16|16|986", 'how many gave way is counted');
query_is($node, 'postgres', q(SELECT string_agg(application_name, ' ' ORDER BY last_at) FROM lockfence.offenders WHERE code = 'LF002'),
	join(' ', map { "job $_" } 985 .. 1000), 'those that were seen longest ago');

# ---- of all databases, and none is lost among sessions that count at once

$node->safe_psql('postgres', 'SELECT lockfence.stats_reset(); CREATE DATABASE other');
query_is($node, 'postgres', 'SELECT count(*), (SELECT sum(evicted) FROM lockfence.stats_limits()) FROM lockfence.offenders', '0|0',
	'stats_reset() forgets the offenders');
$node->safe_psql('other', q(CREATE EXTENSION lockfence; CREATE TABLE t (id int); SELECT lockfence.attach('t', 't')));
refused_ok($node, 'other', 'INSERT INTO t VALUES (1)', 'LF002', 'a refusal in another database');
query_is($node, 'postgres', 'SELECT database, target, code, refused FROM lockfence.offenders', 'other||LF002|1', 'is seen from this one');
# An advisory fence counts as fast as it can.
$node->pgbench('-n -c 8 -t 10', 0, [qr/processed: 80\/80/], [qr/^$/], 'offenders at once',
	{ '140_offenders' => q(SELECT set_config('application_name', 'client ' || :client_id % 2, false);
INSERT INTO tried SELECT generate_series(1, 20000);
UPDATE tried SET fence = 41 WHERE id = 0;
) });
query_is($node, 'postgres', q(SELECT application_name, code, reported, token FROM lockfence.offenders
	WHERE application_name LIKE 'client%' ORDER BY 1, 2), join("\n", map { ("client $_|LF001|40|41", "client $_|LF002|800000|") } 0, 1),
	'every refusal was counted');

# More offenders than there are slots, in all sessions: each slot is one offender's, and all that gave way are counted.
$node->safe_psql('postgres', 'SELECT lockfence.stats_reset()');
$node->pgbench('-n -c 8 -t 250', 0, [qr/processed: 2000\/2000/], [qr/^$/], 'too many offenders at once',
	{ '140_many' => q(SELECT set_config('application_name', 'client ' || :client_id || ' ' || random(), false);) . "\n" . flood('DELETE FROM batch', 1) . ";\n" });
query_is($node, 'postgres', q(SELECT count(*), count(DISTINCT application_name), min(refused), max(refused) FROM lockfence.offenders), '16|16|1|1',
	'a slot is one offender\'s');
query_is($node, 'postgres', q(SELECT used, evicted FROM lockfence.stats_limits() WHERE kept = 'other offenders'), '16|1984', 'all that gave way are counted');

$node->restart;
query_is($node, 'postgres', 'SELECT count(*) FROM lockfence.offenders', '0', 'a restart starts anew');
$node->stop;

done_testing();
