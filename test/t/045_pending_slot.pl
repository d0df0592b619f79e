# The windows of holds and advances, in which a session is stopped: no other waits for one that has not decided yet, a
# strong lock lasts as long as the advance, and a session that is gone by the time it is to be ended is none to warn of.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Stopped;
use Test::More;

my $node = fenced_node('pending', "shared_preload_libraries = 'lockfence'\nmax_prepared_transactions = 0\n");
my $limit = $PostgreSQL::Test::Utils::timeout_default . 's';

my $holder = session($node, 'postgres');
my $advance = session($node, 'postgres');
my $other = session($node, 'postgres');

# Starts a statement and does not wait for it.
sub start
{
	my ($session, $sql) = @_;

	$session->{psql}->query_until(qr/^started$/m, "\\echo started\n$sql;\n");
	return;
}

# twice, to have the mark cached
ask($_, q{SELECT lockfence.present('r', 10)}) foreach $other, $holder, $holder;

# ---- a holder that has filled its slot, and has not granted it

my $stopped = Stopped->new($node, $holder, 'lockfence_grant_slot')
  or plan skip_all => 'no debugger may stop a process here';

start($holder, q{BEGIN; SELECT lockfence.present('r', 10)});
$stopped->await('lockfence_grant_slot');
is(ask($advance, "SET statement_timeout = '$limit'; SELECT lockfence.present('r', 11)"), '10',
	'an advance does not wait for a holder that is stopped while it decides');
$stopped->finish;
like(finish_blocked($holder), qr/ERROR:  LF001:/, 'which finds out that it came too late');
ask($holder, 'ROLLBACK');

# ---- a holder that takes its slot back, since the mark has changed meanwhile, and then queues up for the lock

ask($_, q{SELECT lockfence.present('r', 11)}) foreach $holder, $holder;
$stopped = Stopped->new($node, $holder, 'lockfence_fill_slot', 'lockfence_free_slot');
start($holder, q{BEGIN; SELECT lockfence.present('r', 11)});
$stopped->await('lockfence_fill_slot');
ask($other, q{BEGIN; SELECT lockfence.present('r', 12)});
$stopped->go_on('lockfence_fill_slot');
$stopped->await('lockfence_free_slot');
start_blocked($advance, q{SELECT lockfence.present('r', 13)});
ask($other, 'ROLLBACK');
is(finish_blocked($advance), '11', 'nor for one that takes its slot back');
$stopped->finish;
like(finish_blocked($holder), qr/ERROR:  LF001:/, 'which is stale then, no victim of a deadlock');
ask($holder, 'ROLLBACK');

# ---- a holder that has read the mark itself, not the cache, and has not filled its slot

ask($other, q{SELECT lockfence.present('read', 10)});
$stopped = Stopped->new($node, $holder, 'lockfence_fill_slot');
start($holder, q{BEGIN; SELECT lockfence.present('read', 10)});
$stopped->await('lockfence_fill_slot');
is(ask($other, q{SELECT lockfence.present('read', 11)}), '10', 'an advance does not wait for a holder that has only read the mark');
$stopped->finish;
like(finish_blocked($holder), qr/ERROR:  LF001:/, 'which sees that the mark has changed since');
ask($holder, 'ROLLBACK');

# ---- an advance below which a subtransaction aborts

sub abort_subtransaction
{
	return ('set $context = *(void **) &CurrentMemoryContext', 'set $owner = *(void **) &CurrentResourceOwner',
		'call ((void (*)(char *)) BeginInternalSubTransaction)(0)', 'call ((void (*)(void)) RollbackAndReleaseCurrentSubTransaction)()',
		'set *(void **) &CurrentMemoryContext = $context', 'set *(void **) &CurrentResourceOwner = $owner');
}

ask($_, q{SELECT lockfence.present('r', 13)}) foreach $holder, $holder;
SKIP:
{
	$stopped = Stopped->new($node, $advance, [ 'lockfence_mark_write', abort_subtransaction() ])
	  or skip 'no debugger may stop a process here', 2;
	start($advance, q{SELECT lockfence.present('r', 14)});
	$stopped->await('lockfence_mark_write');
	like(ask($holder, q{SET lock_timeout = '10ms'; BEGIN; SELECT lockfence.present('r', 13)}), qr/ERROR:  55P03:/,
		'a strong lock outlives the abort of a subtransaction below it');
	$stopped->finish;
	is(finish_blocked($advance), '13', 'the advance goes on');
	ask($holder, 'ROLLBACK; RESET lock_timeout');
}

# ---- a holder that is gone before it is ended

SKIP:
{
	$stopped = Stopped->new($node, $advance, ['lockfence_preempt_holders'])
	  or skip 'no debugger may stop a process here', 1;
	ask($holder, q{BEGIN; SELECT lockfence.present('r', 14)});
	start($advance, q{SET lockfence.preempt = on; SELECT lockfence.present('r', 15)});
	$stopped->await('lockfence_preempt_holders');
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($holder->{pid})");
	$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $holder->{pid})")
	  or die 'not terminated';
	$stopped->finish;
	is(finish_blocked($advance), '14', 'an advance goes on without a word about a holder that is gone');
}

done_testing();
