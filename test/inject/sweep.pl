# Sweeps over the paths of a decision: see run.  Each path is taken by a new session with its first call going wrong,
# by another with its second, and so on until it succeeds.  After each error the same session has to decide
# rightly: by the mark, the epoch and the minimum, and on the same path once more.
use strict;
use warnings;
no warnings 'redundant';	# statements without a token among those that show one

use DBI;
use Test::More;

my ($name) = @ARGV;
my $database = "inject_$name";

sub connection
{
	my ($db) = @_;

	return DBI->connect("dbi:Pg:dbname=$db", '', '',
		{ PrintError => 0, RaiseError => 0, PrintWarn => 0, AutoCommit => 1, pg_server_prepare => 0 })
	  // die $DBI::errstr;
}

# Runs statements; returns the SQLSTATE of the one that fails, or "" and the value that the last one returned.
sub try
{
	my ($db, @statements) = @_;
	my $value;

	foreach (@statements)
	{
		my $statement = $db->prepare($_);
		$statement->execute or return $statement->state;
		$value = $statement->{NUM_OF_FIELDS} ? ($statement->fetchrow_array)[0] : undef;
		$statement->finish;
	}
	return wantarray ? ('', $value) : '';
}

sub must
{
	my ($db, @statements) = @_;
	my ($state, $value) = try($db, @statements);

	die "$state: @statements: " . $db->errstr if $state ne '';
	return $value;
}

must(connection('postgres'), "CREATE DATABASE $database");
my $admin = connection($database);

# Tokens of epoch 1, as its revisions; the minimum is 20.
sub token { return 2**48 * ($_[1] // 1) + $_[0] }

my $minimum = token(20);
my $next = 50;

must($admin, $_) foreach split /;\n/, <<'SQL';
CREATE EXTENSION lockfence;
CREATE FUNCTION inject(text, bigint) RETURNS void LANGUAGE c STRICT AS '$libdir/lockfence', 'lockfence_inject';
CREATE FUNCTION calls() RETURNS bigint LANGUAGE c AS '$libdir/lockfence', 'lockfence_inject_calls';
CREATE TABLE batch (id int PRIMARY KEY, grp int NOT NULL, kind text NOT NULL, note text, fence lockfence.fence_token);
INSERT INTO batch VALUES (1, 1, 'a'), (2, 1, 'a');
CREATE TABLE night (id int PRIMARY KEY, note text);
INSERT INTO night VALUES (1);
CREATE TABLE doc (id int PRIMARY KEY, note text, fence lockfence.fence_token);
INSERT INTO doc VALUES (1), (2);
CREATE TABLE part (id int, region text, fence lockfence.fence_token, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF part FOR VALUES IN ('b');
INSERT INTO part VALUES (1, 'a');
SELECT lockfence.attach('batch', 'batch-{grp}-{kind}', 'fence');
SELECT lockfence.attach('night', 'jobs/night');
SELECT lockfence.attach('doc');
SELECT lockfence.attach('part', 'part-{id}', 'fence');
CREATE FUNCTION granted(resource text, token lockfence.fence_token) RETURNS boolean LANGUAGE sql
	AS 'SELECT lockfence.token_revision(token) < 100000';
SELECT lockfence.set_epoch(1, 'test')
SQL
must($admin, "SELECT lockfence.reopen($minimum, 'test')");

# The paths: statements of one transaction with the token as %s.  They end by COMMIT if their second word is "keep",
# "advances" if what they are given is a higher token than the mark's.
my $validate = q{SET LOCAL lockfence.validator = 'public.granted(text,lockfence.fence_token)'};
my @paths = (
	[ 'present', 'keep', q{SELECT lockfence.present('batch-1-a', %s)} ],
	[ 'present', 'advances', q{SELECT lockfence.present('batch-1-a', %s)} ],
	[ 'template update', 'keep', q{UPDATE batch SET note = 'x', fence = %s WHERE id = 1} ],
	[ 'template update', 'advances', q{UPDATE batch SET note = 'x', fence = %s WHERE id = 1} ],
	[ 'template insert', 'undo', q{INSERT INTO batch VALUES (3, 1, 'a', 'x', %s)} ],
	[ 'template delete', 'undo', q{SELECT lockfence.present(%s)}, q{DELETE FROM batch WHERE id = 2} ],
	[ 'template copy of its rows', 'undo', q{INSERT INTO batch SELECT id + 10, grp, kind, note, %s FROM batch} ],
	[ 'constant update', 'keep', q{SELECT lockfence.present(%s)}, q{UPDATE night SET note = 'x'} ],
	[ 'constant insert', 'undo', q{SELECT lockfence.present('jobs/night', %s)}, q{INSERT INTO night VALUES (2)} ],
	[ 'constant delete', 'undo', q{SELECT lockfence.present(%s)}, q{DELETE FROM night} ],
	[ 'constant truncate', 'undo', q{SELECT lockfence.present(%s)}, q{TRUNCATE night} ],
	[ 'constant update', 'advances', q{SELECT lockfence.present(%s)}, q{UPDATE night SET note = 'x'} ],
	[ 'row update', 'keep', q{UPDATE doc SET note = 'x', fence = %s WHERE id = 1} ],
	[ 'row delete', 'undo', q{SELECT lockfence.present(%s)}, q{DELETE FROM doc WHERE id = 1} ],
	[ 'row update', 'advances', q{UPDATE doc SET note = 'x', fence = %s WHERE id = 1} ],
	[ 'move of a row', 'undo', q{UPDATE part SET region = 'b', fence = %s WHERE id = 1} ],
	[ 'guarded update', 'keep', q{SELECT lockfence.guarded_update('batch', '{"grp": 1, "kind": "a"}', '{"note": "x"}', %s)} ],
	[ 'guarded update of a row', 'keep', q{SELECT lockfence.guarded_update('doc', '{"id": 1}', '{"note": "x"}', %s)} ],
	[ 'guarded delete', 'undo', q{SELECT lockfence.guarded_delete('batch', '{"grp": 1, "kind": "a"}', %s)} ],
	[ 'guarded update', 'advances', q{SELECT lockfence.guarded_update('batch', '{"grp": 1, "kind": "a"}', '{"note": "x"}', %s)} ],
	[ 'present, in a savepoint', 'keep', 'SAVEPOINT s', q{SELECT lockfence.present('batch-1-a', %s)}, 'RELEASE s' ],
	[ 'present, past the locks', 'keep', 'SET LOCAL lockfence.max_resource_locks = 0', q{SELECT lockfence.present('batch-1-a', %s)} ],
	[ 'present, validated', 'advances', $validate, q{SELECT lockfence.present('batch-1-a', %s)} ],
);

# The same mark everywhere.
sub raise_all
{
	my $token = token(++$next);

	must($admin, sprintf($_, $token))
	  foreach q{SELECT lockfence.present('batch-1-a', %s)}, q{SELECT lockfence.present('jobs/night', %s)},
	  q{SELECT lockfence.present('part-1', %s)}, q{UPDATE doc SET fence = %s WHERE id = 1};
	return;
}

# Does the session decide rightly, where the mark is the next revision or still the one before?
sub decides_rightly
{
	my ($db, $what, @path) = @_;
	my $present = q{SELECT lockfence.present('%s', %s)};

	must($db, 'SELECT calls()');
	# the epoch first, since what a session takes it for is never looked at again
	ok(try($db, sprintf($present, 'new', token(60, 0))) eq 'LF001', "$what: an epoch of before is stale");
	ok(try($db, sprintf($present, 'new', token(60, 2))) eq 'LF004', "$what: an epoch to come is unknown");
	ok(try($db, sprintf($present, 'new', token(10))) eq 'LF001', "$what: below the minimum is stale");
	ok(try($db, sprintf($present, 'batch-1-a', token($next - 1))) eq 'LF001', "$what: below the mark is stale");
	ok(try($db, 'BEGIN', map { sprintf $_, token($next - 1) } @path) eq 'LF001', "$what: ... on the same path");
	must($db, 'ROLLBACK');
	ok(try($db, sprintf($present, 'batch-1-a', token($next))) eq '', "$what: the mark is current");
	ok(try($db, 'BEGIN', map { sprintf $_, token($next) } @path) eq '', "$what: ... on the same path");
	must($db, 'ROLLBACK');
	return;
}

# Takes a path with its n-th call going wrong, for each n; returns for how many there was one.
sub sweep
{
	my ($mode, $path, $kind, @statements) = @_;
	my $n = 0;
	my $fired = 1;

	while ($fired)
	{
		my $db = connection($database);
		my $what = "$path ($kind), $mode at call " . ++$n;

		raise_all() if $kind eq 'advances' || $n == 1;
		my $token = token($kind eq 'advances' ? $next + 1 : $next);
		must($db, "SELECT inject('$mode', $n)");
		my $state = try($db, 'BEGIN', (map { sprintf $_, $token } @statements), $kind eq 'undo' ? 'ROLLBACK' : 'COMMIT');
		must($db, 'ROLLBACK') if $state ne '';
		$fired = must($db, 'SELECT calls()') >= $n;
		ok($state eq ($fired && $mode eq 'error' ? 'XX999' : ''), "$what: ends by $state");
		$next++ if $kind eq 'advances' && $state eq '';
		decides_rightly($db, $what, @statements) if $fired;
		$db->disconnect;
	}
	return $n - 1;
}

# What an administrator does, in the way in which it goes wrong, does not count.
sub sweep_acts
{
	my $n = 0;
	my $fired = 1;

	while ($fired)
	{
		my $db = connection($database);
		my $what = 'raise_mark, error at call ' . ++$n;

		must($db, "SELECT inject('error', $n)");
		my $state = try($db, sprintf q{SELECT lockfence.raise_mark('batch-1-a', %s, 'test')}, token($next + 1));
		$fired = must($db, 'SELECT calls()') >= $n;
		ok($state eq ($fired ? 'XX999' : ''), "$what: ends by $state");
		$next++ if $state eq '';
		decides_rightly($db, $what, q{SELECT lockfence.present('batch-1-a', %s)});
		$db->disconnect;
	}
	return $n - 1;
}

# Advice: it says no, or nothing.
sub sweep_advice
{
	my $n = 0;
	my $fired = 1;
	my %answers = (token($next) => 1, token($next - 1) => 0, token(60, 0) => 0, token(60, 2) => 0, token(10) => 0);
	my $ask = q{SELECT lockfence.is_current('%s', %s)::int};

	while ($fired)
	{
		my $db = connection($database);
		my $what = 'is_current, error at call ' . ++$n;

		must($db, "SELECT inject('error', $n)");
		my $state = try($db, sprintf $ask, 'batch-1-a', token(60, 0));
		$fired = must($db, 'SELECT calls()') >= $n;
		ok($state eq ($fired ? 'XX999' : ''), "$what: ends by $state");
		ok(must($db, sprintf $ask, 'batch-1-a', $_) == $answers{$_}, "$what: $_ is " . $answers{$_})
		  foreach keys %answers;
		$db->disconnect;
	}
	return $n - 1;
}

# The gate, shut: whatever goes wrong, it lets nothing pass before reopen() has come to its end.
sub sweep_gate
{
	my $n = 0;
	my $fired = 1;
	my $present = q{SELECT lockfence.present('batch-1-a', %s)};

	while ($fired)
	{
		must($admin, q{UPDATE lockfence.state SET value = 77 WHERE name LIKE 'timeline:%'});
		my $db = connection($database);
		my $what = 'reopen, error at call ' . ++$n;

		must($db, "SELECT inject('error', $n)");
		my $state = try($db, sprintf $present, token($next));
		my $spent = must($db, 'SELECT calls()');
		ok($state eq ($spent >= $n ? 'XX999' : 'LF005'), "$what: the gate is shut: $state");
		ok(try($db, sprintf $present, token($next)) eq 'LF005', "$what: the gate is still shut");
		must($db, "SELECT inject('error', $n)");
		$state = try($db, sprintf q{SELECT lockfence.reopen(%s, 'test')}, token($next));
		$fired = must($db, 'SELECT calls()') >= $n || $spent >= $n;
		ok($state eq '' || $state eq 'XX999', "$what: reopen() ends by $state");
		ok(try($db, sprintf $present, token($next)) eq ($state eq '' ? '' : 'LF005'), "$what: as it went");
		ok(try($db, sprintf $present, token($next - 1)) eq ($state eq '' ? 'LF001' : 'LF005'), "$what: for others, too");
		must($db, sprintf q{SELECT lockfence.reopen(%s, 'test')}, token($next)) if $state ne '';
		decides_rightly($db, $what, $present);
		$db->disconnect;
	}
	return $n - 1;
}

# The gate, open though the timeline has changed: the record is written at the commit, which goes wrong as a whole.
sub sweep_record
{
	my $n = 0;
	my $fired = 1;
	my $present = q{SELECT lockfence.present('batch-1-a', %s)};

	must($admin, $_) foreach q{ALTER SYSTEM SET lockfence.on_timeline_change = 'ignore'}, 'SELECT pg_reload_conf()';
	1 until must(connection($database), 'SHOW lockfence.on_timeline_change') eq 'ignore';
	while ($fired)
	{
		must($admin, q{UPDATE lockfence.state SET value = 77 WHERE name LIKE 'timeline:%'});
		my $db = connection($database);
		my $what = 'record at commit, error at call ' . ++$n;

		must($db, "SELECT inject('error', $n)");
		my $state = try($db, 'BEGIN', sprintf($present, token($next + 1)), 'COMMIT');
		must($db, 'ROLLBACK') if $state ne '';
		$fired = must($db, 'SELECT calls()') >= $n;
		ok($state eq ($fired ? 'XX999' : ''), "$what: ends by $state");
		$next++ if $state eq '';
		decides_rightly($db, $what, $present);
		$db->disconnect;
	}
	must($admin, $_) foreach q{ALTER SYSTEM RESET lockfence.on_timeline_change}, 'SELECT pg_reload_conf()';
	return $n - 1;
}

# What is read while it changes is read again: the epoch goes up as the session is in the middle of the path.
sub sweep_changes
{
	my $n = 0;
	my $fired = 1;
	my $epoch = 1;
	my $present = q{SELECT lockfence.present('other', %s)};

	while ($fired)
	{
		my $db = connection($database);
		my $what = 'set_epoch() at call ' . ++$n;
		my $pid = must($db, 'SELECT pg_backend_pid()');

		must($admin, 'SELECT pg_advisory_lock(1)');
		must($db, "SELECT inject('pause', $n)");
		my $statement = $db->prepare(sprintf($present, token(50, $epoch)), { pg_async => 1 });
		$statement->execute;
		my $waits = "SELECT count(*) FROM pg_locks WHERE pid = $pid AND locktype = 'advisory' AND NOT granted AND objsubid = 1";
		my $paused;
		select(undef, undef, undef, 0.001) until ($paused = must($admin, $waits)) || $db->pg_ready;
		my $before = $epoch;
		must($admin, 'SELECT lockfence.set_epoch(' . ++$epoch . q{, 'test')}) if $paused;
		must($admin, 'SELECT pg_advisory_unlock(1)');
		$db->pg_result;
		$statement->finish;
		must($db, 'SELECT pg_advisory_unlock_all()');
		$fired = must($db, 'SELECT calls()') >= $n;
		ok(try($db, sprintf $present, token(51, $before)) eq 'LF001', "$what: the epoch of before is stale") if $paused;
		ok(try($db, sprintf $present, token(50, $epoch)) eq '', "$what: the new one is current");
		$db->disconnect;
	}
	return $n - 1;
}

raise_all();
my %calls;
$calls{"$_->[0] ($_->[1])"} = sweep('error', @$_) foreach @paths;
$calls{"flush: $_->[0] ($_->[1])"} = sweep('flush', @$_) foreach @paths[0, 2, 3, 7, 16];
raise_all();
$calls{raise_mark} = sweep_acts();
raise_all();
$calls{is_current} = sweep_advice();
$calls{reopen} = sweep_gate();
$calls{record} = sweep_record();
$calls{changes} = sweep_changes();

# a path that calls nothing shows nothing
ok($calls{$_} >= 10, "$name: $_: $calls{$_} calls") foreach sort keys %calls;
done_testing();
