# A transaction that is ended for an advance, or whose wait for one is ended, is told so in its error.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fenced_node('ended', "shared_preload_libraries = 'lockfence'\nlog_error_verbosity = verbose\n");

$node->safe_psql('postgres', q{
	CREATE TABLE plain (id int PRIMARY KEY, note text);
	INSERT INTO plain VALUES (1);
	SELECT lockfence.present('r', 10);
});

my $holder = session($node, 'postgres');
my $next = session($node, 'postgres');
my $other = session($node, 'postgres');

sub gave_way
{
	my ($token) = @_;

	return qr/\nDETAIL:  The transaction held resource "r" by a stale token\. It gave way to process $next->{pid}, which advances the mark to token $token \(epoch 0, revision $token\)\.\nHINT:  The lock has since been granted/;
}

# ---- the loser of a deadlock, which waits for a row

ask($holder, q{BEGIN; SELECT lockfence.present('r', 10)});
ask($next, q{BEGIN; UPDATE plain SET note = 'next'});
start_blocked($holder, q{UPDATE plain SET note = 'holder'});
is(ask($next, q{SELECT lockfence.present('r', 11)}), 10, 'the higher token goes on');
my $said = finish_blocked($holder);
like($said, qr/ERROR:  57014: canceling statement due to user request/, 'the lower one is canceled');
like($said, gave_way(11), 'and told why');
my $log = slurp_file($node->logfile);
like($log, qr/canceling process $holder->{pid}, which holds resource "r" by a stale token/, 'the log says who');
like($log, qr/DETAIL:  The transaction held resource "r" by a stale token/, 'and who it was');
ask($_, 'ROLLBACK') foreach ($holder, $next);

# ---- preempted, idle in its transaction

my $idle = session($node, 'postgres');
ask($idle, q{BEGIN; SELECT lockfence.present('r', 10)});
is(ask($next, q{SET lockfence.preempt = on; SELECT lockfence.present('r', 12)}), 10, 'preemption');
$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $idle->{pid})")
  or die 'not terminated';
like(slurp_file($node->logfile), qr/FATAL:  57P01: .*\n.*DETAIL:  The transaction held resource "r" by a stale token.* token 12 /,
	'who is idle is terminated, and told why');
eval { $idle->{psql}->quit };

# ---- another's doing

ask($holder, q{BEGIN; SELECT lockfence.present('r', 12)});
ask($other, 'BEGIN; LOCK TABLE plain');
start_blocked($holder, 'SELECT * FROM plain');
ask($other, "SELECT pg_cancel_backend($holder->{pid})");
$said = finish_blocked($holder);
like($said, qr/ERROR:  57014: canceling statement due to user request/, 'canceled by hand');
unlike($said, qr/DETAIL/, 'that is all there is to tell');
ask($_, 'ROLLBACK') foreach ($holder, $other);

# ---- waits that are ended

# Since 19, PostgreSQL says which lock, before that.
sub while_waiting
{
	my ($for) = @_;

	return qr/55P03.*\nCONTEXT:  (?:waiting for \w+ on .*\n)?while waiting for \Q$for\E/;
}

ask($next, 'RESET lockfence.preempt');
ask($holder, q{BEGIN; SELECT lockfence.present('r', 12)});
ask($other, q{SET lock_timeout = '10ms'});
like(ask($other, q{SELECT lockfence.present('r', 13)}),
	while_waiting('other holders of resource "r"'), 'an advance');
like(ask($other, q{SELECT lockfence.reset_mark('r', 13, 'test')}),
	while_waiting('other holders of resource "r"'), 'reset_mark()');
start_blocked($next, q{SELECT lockfence.present('r', 13)});
like(ask($other, q{SELECT lockfence.present('r', 12)}),
	while_waiting('an advance of the mark of resource "r"'), 'a holder behind an advance');
ask($holder, 'COMMIT');
is(finish_blocked($next), 12, 'the advance goes on');
ask($holder, q{BEGIN; SELECT lockfence.present('r', 14)});
like(ask($other, q{SELECT lockfence.reset_mark('r', 15, 'test')}),
	while_waiting('other holders of resource "r"'), 'reset_mark() of a mark that is being changed');
ask($holder, 'ROLLBACK');

$_->{psql}->quit foreach ($holder, $next, $other);
done_testing();
