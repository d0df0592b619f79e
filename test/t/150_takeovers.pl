# Takeovers where a single session cannot show them: of other sessions and roles, under many writers at once, prepared,
# replicated, past the size of the rings, notified; and in a server that does not preload the library.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('takeovers', <<'CONF', allows_streaming => 'logical');
shared_preload_libraries = 'lockfence'
lockfence.max_takeovers = 200
lockfence.unknown_resource = ignore
CONF

sub changes
{
	my ($resource) = @_;
	return "SELECT string_agg(concat_ws(' ', before, token, way), ', ' ORDER BY number) FROM lockfence.takeovers WHERE resource = '$resource'";
}

# ---- whose it was

$node->safe_psql('postgres', q{
	CREATE ROLE worker LOGIN;
	GRANT EXECUTE ON FUNCTION lockfence.present(text, lockfence.fence_token),
		lockfence.raise_mark(text, lockfence.fence_token, text) TO worker;
	SELECT lockfence.present('job', 1);
});
$node->safe_psql('postgres', q{SET SESSION AUTHORIZATION worker; SET application_name = 'worker "7"'; SELECT lockfence.present('job', 2)});
query_is($node, 'postgres', q{SELECT before, token, role, application_name, client_addr IS NULL, pid <> pg_backend_pid(), at < clock_timestamp()
	FROM lockfence.takeovers LIMIT 1}, '1|2|worker|worker "7"|t|t|t', 'who took over');
$node->safe_psql('postgres', q{SET SESSION AUTHORIZATION worker; SELECT lockfence.raise_mark('job', 3, 'stuck')});
query_is($node, 'postgres', 'SELECT token, way, role FROM lockfence.takeovers LIMIT 1', '3|raise_mark|worker',
	'the role of the session, not the owner of the function');

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION lockfence');
query_is($node, 'other', q{SELECT database, resource, token FROM lockfence.takeovers LIMIT 1}, 'postgres|job|3', 'other databases have them');
$node->safe_psql('other', q{SELECT lockfence.present('job', 9)});
refused_ok($node, 'other', q{SELECT lockfence.present('job', 8)}, 'LF001', 'a stale token in the other database');
query_is($node, 'other', 'SELECT measured, unknown FROM lockfence.overlap', '1|0', 'it is measured there');
query_is($node, 'postgres', 'SELECT coalesce(sum(measured + unknown), 0) FROM lockfence.overlap', '0', 'and only there');

# ---- prepared: nothing says any more who it was when the commit comes, and it may not come

$node->safe_psql('postgres', q{
	BEGIN; SELECT lockfence.present('prepared', 5); PREPARE TRANSACTION 'taken';
	BEGIN; SELECT lockfence.present('undone', 5); PREPARE TRANSACTION 'undone'; ROLLBACK PREPARED 'undone';
});
query_is($node, 'postgres', q{SELECT resource, token, prepared FROM lockfence.takeovers WHERE resource IN ('prepared', 'undone') ORDER BY number},
	"prepared|5|t\nundone|5|t", 'a prepared transaction is known as such');
$node->safe_psql('postgres', q{COMMIT PREPARED 'taken'});
query_is($node, 'postgres', q{SELECT count(*) FROM lockfence.takeovers WHERE resource = 'prepared'}, '1', 'once');
$node->safe_psql('postgres', q{SELECT lockfence.present('undone', 3)});
query_is($node, 'postgres', changes('undone'), '5 present, 3 present', 'what was undone did not shut out a lower token');
$node->safe_psql('postgres', q{SELECT lockfence.stats_reset(); BEGIN; SELECT lockfence.present('undone', 6); PREPARE TRANSACTION 'undone';
	ROLLBACK PREPARED 'undone'; SELECT pg_sleep(1.1); SELECT lockfence.present('undone', 4)});
refused_ok($node, 'postgres', q{SELECT lockfence.present('undone', 2)}, 'LF001', 'a stale token');
query_is($node, 'postgres', q{SELECT measured, unknown, max_seconds <= extract(epoch FROM clock_timestamp() - (SELECT at FROM lockfence.takeovers WHERE token = 4))
	FROM lockfence.overlap}, '1|0|t', 'is late since a commit');

# ---- notified

my $listener = session($node, 'postgres');
my $taker = session($node, 'postgres');

# What has been notified to the listener, which need not have done anything for it.
sub notifications
{
	return join(' ', ask($listener, 'SELECT 1') =~ /^Asynchronous notification "lockfence_takeover" with payload "(.*)" received/mg);
}

ask($listener, 'LISTEN lockfence_takeover');
ask($taker, q{SELECT lockfence.present('told', 1)});
is(notifications(), '', 'off: no notification');
ask($taker, 'SET lockfence.notify_takeovers = on');
ask($taker, q{SELECT lockfence.present('told', 9007199254740993)});
is(notifications(), '{"resource": "told", "token": "9007199254740993"}', 'on: resource and token, with all digits');
ask($taker, q{SELECT lockfence.present('told', 9007199254740993)});
is(notifications(), '', 'the same holder again: none');
ask($taker, q{BEGIN; SELECT lockfence.present('undone', 20); ROLLBACK;});
is(notifications(), '', 'rolled back: none');
ask($taker, q{BEGIN; SAVEPOINT a; SELECT lockfence.present('told-a', 20); ROLLBACK TO a; SELECT lockfence.present('told-b', 20);});
is(notifications(), '', 'not committed: none yet');
ask($taker, 'COMMIT');
is(notifications(), '{"resource": "told-b", "token": "20"}', 'rolled back to a savepoint: none of that');
is(ask($taker, q{BEGIN; SELECT lockfence.present('told-c', 20); PREPARE TRANSACTION 'told';}), '', 'it can be prepared');
is(ask($taker, q{COMMIT PREPARED 'told'}), '', 'and committed');
is(notifications(), '', 'prepared: none');
ask($taker, q{SELECT lockfence.present(E'"\\\\\n' || repeat(chr(1), 1021), 20)});
is(notifications(), '{"resource": "\"\\\\\n' . '\u0001' x 1021 . '", "token": "20"}', 'the longest name there is');
ask($taker, q{SELECT count(lockfence.present('told-' || g, 20)) FROM generate_series(1, 1000) g});
is(scalar(() = notifications() =~ /"resource"/g), 64, 'of a transaction of many, the first');
$node->safe_psql('postgres', q{CREATE TABLE doc (id text PRIMARY KEY); SELECT lockfence.attach('doc');
	INSERT INTO doc VALUES (repeat('x', 2000), 1)});
ask($taker, 'UPDATE doc SET fence = 2');
is(notifications(), '{"resource": "' . substr('public.doc (id)=(' . 'x' x 2000, 0, 1024) . '", "token": "2"}', 'a row, whose name is longer');

# A holder that is stopped is told when it goes on, before it writes.
my $holder = session($node, 'postgres');
ask($holder, q{LISTEN lockfence_takeover; SELECT lockfence.present('held', 1)});
kill('STOP', $holder->{pid}) == 1 or die 'cannot stop the holder';
ask($taker, q{SELECT lockfence.present('held', 2)});
kill('CONT', $holder->{pid}) == 1 or die 'cannot continue the holder';
like(ask($holder, 'SELECT 1'), qr/"\{"resource": "held", "token": "2"\}"/, 'a stopped holder hears of the takeover');
$_->{psql}->quit foreach ($listener, $taker, $holder);

# ---- many writers at once: none is lost, and each resource has its own order

$node->safe_psql('postgres', q{
	SELECT lockfence.stats_reset();
	SELECT lockfence.raise_mark('hot-' || g, 1, 'test') FROM generate_series(0, 3) g;
	SELECT lockfence.stats_reset();
	CREATE SEQUENCE tokens START 2;
	CREATE FUNCTION take(resource text) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM lockfence.present(resource, nextval('tokens'));
	EXCEPTION WHEN SQLSTATE 'LF001' THEN
		NULL;
	END $$;
});
$node->pgbench('-n -c 8 -j 2 -t 20', 0, [qr/processed: 160\/160/], [qr/^$/], '8 writers',
	{ '150_writers' => "SELECT take('hot-' || :client_id % 4);\n" });
query_is($node, 'postgres', q{SELECT count(*) > 4, count(*) = (SELECT advanced FROM lockfence.stats WHERE target IS NULL)
	FROM lockfence.takeovers WHERE resource LIKE 'hot-%'}, 't|t', '8 writers: each takeover is there');
query_is($node, 'postgres', q{SELECT count(*) FROM (SELECT before, coalesce(lag(token) OVER (PARTITION BY resource ORDER BY number), 1) AS last
	FROM lockfence.takeovers WHERE resource LIKE 'hot-%') t WHERE before <> last}, '0', '8 writers: each begins where the last one ended');

query_is($node, 'postgres', 'SELECT lockfence.stats_reset(); SELECT (SELECT count(*) FROM lockfence.takeovers), (SELECT coalesce(sum(measured), 0) FROM lockfence.overlap)',
	"\n0|0", 'stats_reset() forgets all');

# ---- past the size of the rings: first tokens do not overwrite takeovers

$node->safe_psql('postgres', q{SELECT lockfence.stats_reset(); SELECT lockfence.present('hot-0', 100000)});
$node->safe_psql('postgres', join('', map { "SELECT lockfence.present('first-$_', 1);" } 1 .. 250));
query_is($node, 'postgres', q{SELECT count(*), count(*) FILTER (WHERE before IS NULL), (array_agg(resource))[1] FROM lockfence.takeovers},
	'201|200|first-250', 'a takeover outlasts the first tokens of other resources');
$node->safe_psql('postgres', join('', map { "SELECT lockfence.present('hot-1', 100000 + $_);" } 1 .. 250));
query_is($node, 'postgres', q{SELECT count(*), min(token), max(token) FROM lockfence.takeovers WHERE before IS NOT NULL}, '200|100051|100250',
	'of takeovers the last are kept');
query_is($node, 'postgres', q{SELECT kept, capacity, used, evicted FROM lockfence.stats_limits() WHERE setting = 'lockfence.max_takeovers'},
	"takeovers|200|200|51\nfirst marks|200|200|50", 'how many were overwritten');
refused_ok($node, 'postgres', q{SELECT lockfence.present('hot-1', 99999)}, 'LF001', 'later than all that are kept');
query_is($node, 'postgres', 'SELECT measured, unknown FROM lockfence.overlap WHERE target IS NULL', '1|0', 'the oldest that is kept counts');

# ---- what an apply worker brings

$node->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
	INSERT INTO batch VALUES (1, 'x', 10);
	CREATE PUBLICATION fenced FOR TABLE batch;
});
my $subscriber = fenced_node('subscriber', "shared_preload_libraries = 'lockfence'\n", allows_streaming => 'logical');
$subscriber->safe_psql('postgres', q{
	CREATE TABLE batch (id int PRIMARY KEY, note text);
	SELECT lockfence.attach('batch', 'batch-{id}', 'fence');
});
my $connection = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION fenced CONNECTION '$connection' PUBLICATION fenced");
$subscriber->wait_for_subscription_sync($node, 'fenced');
# from here on the marks, too; a copy of all of them would have the first 64 only
$node->safe_psql('postgres', 'ALTER PUBLICATION fenced ADD TABLE lockfence.mark');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION fenced REFRESH PUBLICATION WITH (copy_data = false)');
$node->safe_psql('postgres', q{UPDATE batch SET fence = 11; SELECT lockfence.present('batch-2', 7)});
$node->wait_for_catchup('fenced');
query_is($subscriber, 'postgres', changes('batch-1'), '10 replication, 10 11 replication', 'replicated, with its row');
query_is($subscriber, 'postgres', changes('batch-2'), '7 replication', 'replicated, as a mark');
$subscriber->stop;

# ---- a restart begins anew

$node->restart;
query_is($node, 'postgres', 'SELECT count(*) FROM lockfence.takeovers', '0', 'a restart forgets them');
refused_ok($node, 'postgres', q{SELECT lockfence.present('hot-1', 99999)}, 'LF001', 'late, after a restart');
query_is($node, 'postgres', 'SELECT measured, unknown, max_seconds > 0 FROM lockfence.overlap WHERE target IS NULL', '1|0|t', 'the mark tells since when');
$node->stop;

# ---- a server that does not preload the library

my $bare = fenced_node('bare', "lockfence.max_takeovers = 16\nlockfence.notify_takeovers = on\n");
my $has_registry = server_version($bare) >= 17;
$bare->safe_psql('postgres', q{SELECT lockfence.present('job', 1); SELECT lockfence.present('job', 2)});
query_is($bare, 'postgres', 'SELECT count(*) FROM lockfence.takeovers', $has_registry ? 2 : 0, 'not preloaded: where there is memory');
refused_ok($bare, 'postgres', q{SELECT lockfence.present('job', 1)}, 'LF001', 'not preloaded: a stale token');
query_is($bare, 'postgres', 'SELECT count(*) FROM lockfence.overlap WHERE measured = 1', $has_registry ? 1 : 0, 'not preloaded: measured likewise');
$listener = session($bare, 'postgres');
ask($listener, 'LISTEN lockfence_takeover');
$bare->safe_psql('postgres', q{SELECT lockfence.present('job', 3)});
is(notifications(), '{"resource": "job", "token": "3"}', 'not preloaded: notified all the same');
$listener->{psql}->quit;
$bare->stop;

done_testing();
