# A mark in the shared cache outlives the sessions that put it there.  A session that has gone around the fence's own
# writes since then may have used nothing of lockfence, and those that did may be gone or idle: the old mark is
# not believed all the same.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use Test::More;

my $node = fenced_node('cache', "shared_preload_libraries = 'lockfence'");
my $number = 0;

# Has the mark of a new resource cached by a session that goes; returns the call that presents it.
sub cached
{
	my $present = sprintf q{SELECT lockfence.present('lock %d', 50)}, ++$number;

	$node->safe_psql('postgres', $present) for 1 .. 2;
	return $present;
}

# How many looks into the marks' indexes it takes a new session to present a token.
sub looks
{
	my ($present) = @_;

	return $node->safe_psql('postgres', qq{
		BEGIN;
		DO \$\$ BEGIN @{[ $present =~ s/SELECT/PERFORM/r ]}; END \$\$;
		SELECT sum(pg_stat_get_xact_numscans(indexrelid)) FROM pg_index
		WHERE indrelid = 'lockfence.mark'::regclass;
		COMMIT});
}

# Writes the last resource's mark.
sub write_mark
{
	my ($setting) = @_;
	my $update = "UPDATE lockfence.mark SET token = 60 WHERE resource = 'lock $number'";

	$node->safe_psql('postgres', join('; ', $setting // (), $update));
	mark_is($node, 'postgres', "lock $number", '60', 'the mark was written');
	return;
}

my $disable = 'ALTER TABLE lockfence.mark DISABLE TRIGGER "~lockfence_mark"';
my $enable = 'ALTER TABLE lockfence.mark ENABLE ALWAYS TRIGGER "~lockfence_mark"';
my $function = $node->safe_psql('postgres', q{SELECT pg_get_functiondef('lockfence.guard_mark'::regproc)});
my $has_triggers = q{UPDATE pg_class SET relhastriggers = %s WHERE oid = 'lockfence.mark'::regclass};
my $columns = q{UPDATE pg_trigger SET tgattr = '%s' WHERE tgname = '~lockfence_mark';
	UPDATE pg_class SET relhastriggers = true WHERE oid = 'lockfence.mark'::regclass};

is(looks(cached()), '0', 'a session that has seen no mark yet reads none to accept an equal token');

# Ways behind the fence's back, by sessions that call nothing of lockfence: what opens it, what closes it again,
# and what the write itself needs.
foreach (
	[ 'a trigger disabled', $disable, $enable ],
	[ 'a trigger that does not fire for replicas', $enable =~ s/ALWAYS //r, $enable,
		'SET session_replication_role = replica' ],
	[ 'all triggers disabled', 'ALTER TABLE lockfence.mark DISABLE TRIGGER ALL',
		$enable . q{; ALTER TABLE lockfence.mark ENABLE ALWAYS TRIGGER "~lockfence_marks"} ],
	[ 'a trigger of another column', sprintf($columns, '3'), sprintf($columns, '') ],
	[ 'a table that is said to have no triggers', sprintf($has_triggers, 'false'), sprintf($has_triggers, 'true') ],
	[ 'another function',
		q{CREATE OR REPLACE FUNCTION lockfence.guard_mark() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'},
		$function ])
{
	my ($name, $open, $close, $setting) = @$_;
	my $present = cached();
	my $idle = session($node, 'postgres');

	ask($idle, $present);
	$node->safe_psql('postgres', $open);
	write_mark($setting);
	$node->safe_psql('postgres', $close);
	refused_ok($node, 'postgres', $present, 'LF001', "$name: stale to a new session");
	like(ask($idle, $present), qr/ERROR:  LF001:/, "$name: stale to a session that was idle");
	$idle->{psql}->quit;
	is(looks(cached()), '0', "$name: put right, marks are cached again");
}

# The trigger's row comes to be where it was, since VACUUM has freed the place: another transaction has written it.
sub trigger_place { return $node->safe_psql('postgres', q{SELECT ctid FROM pg_trigger WHERE tgname = '~lockfence_mark'}) }

my $same = 0;
for (my $try = 1; !$same && $try <= 10; $try++)
{
	my $present = cached();
	my $before = trigger_place();

	$node->safe_psql('postgres', $disable);
	write_mark();
	$node->safe_psql('postgres', $_) foreach 'VACUUM pg_trigger', $enable;
	$same = trigger_place() eq $before;
	refused_ok($node, 'postgres', $present, 'LF001', 'a trigger disabled, and its row written anew: stale');
	$node->safe_psql('postgres', 'VACUUM pg_trigger');
}
ok($same, 'at the place where it was');

my $present = cached();
$node->safe_psql('postgres', "BEGIN; $disable; UPDATE lockfence.mark SET token = 60 WHERE resource = 'lock $number'; $enable; COMMIT");
refused_ok($node, 'postgres', $present, 'LF001', 'all in one transaction');

$present = cached();
$node->safe_psql('postgres', 'ALTER TABLE lockfence.mark ALTER token TYPE lockfence.fence_token USING token + 10');
refused_ok($node, 'postgres', $present, 'LF001', 'a rewrite of the table, which fires no trigger');

$present = cached();
$node->safe_psql('postgres', $disable);
cmp_ok(looks($present), '>', 0, 'no mark is taken from the cache while the trigger is off');
write_mark();
refused_ok($node, 'postgres', $present, 'LF001', 'nor put there');
$node->safe_psql('postgres', $enable);

$present = cached();
$node->safe_psql('postgres', $_)
  for 'VACUUM ANALYZE lockfence.mark', 'ALTER DATABASE postgres SET work_mem = 1024';
looks($present);
is(looks($present), '0', 'marks are cached after a vacuum, and after a change of the database');

# ---- what a session knows of the table of marks ends with a change of it by another session

my $knows = session($node, 'postgres');
my @watching = map { "ALTER EVENT TRIGGER $_" } qw(lockfence_before_ddl lockfence_after_ddl);

ask($knows, q{SELECT lockfence.present('known', 1)});
$node->safe_psql('postgres', join('; ', (map { "$_ DISABLE" } @watching),
	'ALTER TABLE lockfence.mark ADD CONSTRAINT low CHECK (token < 1000)'));
like(ask($knows, q{SELECT lockfence.present('known', 2)}), qr/ERROR:  LF009:/, 'a session that has advanced marks sees a constraint on them');
$node->safe_psql('postgres', join('; ', 'ALTER TABLE lockfence.mark DROP CONSTRAINT low',
	map { "$_ ENABLE ALWAYS" } @watching));
is(ask($knows, q{SELECT lockfence.present('known', 2)}), '1', 'and that it is gone');
$knows->{psql}->quit;

# ---- without the cache, a session finds a mark again that it has seen

$node->append_conf('postgresql.conf', 'lockfence.max_cached_marks = 0');
$node->restart;
SKIP:
{
	skip 'a page cannot be pinned where it was before 14', 1 if server_version($node) < 14;

	my $session = session($node, 'postgres');

	my $looks = q{SELECT sum(pg_stat_get_xact_numscans(indexrelid)) FROM pg_index WHERE indrelid = 'lockfence.mark'::regclass};

	ask($session, q{SELECT lockfence.present('seen', 1)}) for 1 .. 2;
	# those of before may not have been reported yet
	my ($before, undef, $after) = split /\n/, ask($session, "BEGIN; $looks; SELECT lockfence.present('seen', 1); $looks; COMMIT");
	is($after, $before, 'a session that has seen a mark looks into no index for it');
}

done_testing();
