# A note by which a resource is about to be held lightly, and which is taken back since the mark has changed: an advance
# that comes upon it waits for that moment, not for the end of the transaction, which then waits for the advance.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = fenced_node('open', "shared_preload_libraries = 'lockfence'\nmax_prepared_transactions = 0\n");
my $dir = $node->basedir;

sub await
{
	my ($file) = @_;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if -e "$dir/$file";
		usleep(100_000);
	}
	return 0;
}

# A debugger that stops a process at one function, and at the next once it may go on, by files: each "at-" tells that it
# stands there, and waits for the "go-" of the same name.
sub stop_at
{
	my ($pid, @functions) = @_;
	my @steps;

	foreach my $function (@functions)
	{
		push @steps, "break $function", "shell touch $dir/on-$function", 'continue', 'delete',
		  "shell touch $dir/at-$function; until test -e $dir/go-$function; do sleep 0.1; done";
	}
	return IPC::Run::start([ 'gdb', '-q', '-batch', '-nx', '-p', $pid, map { ('-ex', $_) } @steps, 'detach' ],
		'<', \undef, '>&', "$dir/gdb.log");
}

sub go_on
{
	my ($function) = @_;

	append_to_file("$dir/go-$function", '');
	return;
}

my $holder = session($node, 'postgres');
my $advance = session($node, 'postgres');
my $other = session($node, 'postgres');
# twice, to have the mark cached
ask($_, q{SELECT lockfence.present('r', 10)}) foreach $other, $holder, $holder;

my @stops = qw(lockfence_lock_shared lockfence_unlock_shared);
my $debugger = eval { stop_at($holder->{pid}, @stops) };
if (!$debugger || !await("on-$stops[0]") || slurp_file("$dir/gdb.log") =~ /^ptrace:/m)
{
	go_on($_) foreach @stops;
	$debugger->finish if $debugger;
	plan skip_all => 'no debugger may stop a process here';
}

$holder->{psql}->query_until(qr/^started$/m, "\\echo started\nBEGIN; SELECT lockfence.present('r', 10);\n");
await('at-lockfence_lock_shared') or die 'the holder does not take its lock';
ask($other, q{BEGIN; SELECT lockfence.present('r', 11)});
go_on('lockfence_lock_shared');
await('at-lockfence_unlock_shared') or die 'the holder does not notice that the mark is being changed';
start_blocked($advance, q{SELECT lockfence.present('r', 12)});
ask($other, 'ROLLBACK');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE pid = $advance->{pid} AND granted AND objsubid = 19526")
  or die 'the advance does not take its lock';
go_on('lockfence_unlock_shared');

is(finish_blocked($advance), '10', 'the advance goes on');
like(finish_blocked($holder), qr/ERROR:  LF001:/, 'and who came too late is stale, no victim of a deadlock');
$debugger->finish;

done_testing();
