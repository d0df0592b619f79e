# Stopped: a session that stands still where a function begins, for races whose window is no longer than some
# instructions.
#
#   my $stopped = Stopped->new($node, $session, 'function', 'other_function') or plan skip_all => ...;
#   ... start a statement that calls them ...
#   $stopped->await('function');		# it stands there
#   $stopped->go_on('function');		# on to the next, or for good
#   $stopped->finish;
#
# By injection points, which have the functions' names, in a server that is built with them (17 or later, configured
# with --enable-injection-points, and the extension injection_points); elsewhere by a debugger.  Instead of a function's name,
# [ NAME, COMMAND... ] has the debugger do something where it begins, so that there is no other way.
package Stopped;

use strict;
use warnings;

use FenceTest;

sub new
{
	my ($class, $node, $session, @stops) = @_;
	my $by = grep({ ref } @stops) || !Stopped::ByPoint::possible($node) ? 'Stopped::ByDebugger' : 'Stopped::ByPoint';

	return $by->new($node, $session, @stops);
}

package Stopped::ByPoint;

use FenceTest;

sub possible
{
	my ($node) = @_;

	return $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'injection_points'});
}

# For this session alone, and all at once: once it stands still, it answers nothing.
sub new
{
	my ($class, $node, $session, @names) = @_;

	$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS injection_points');
	ask($session, 'SELECT injection_points_set_local()');
	ask($session, "SELECT injection_points_attach('$_', 'wait')") foreach @names;
	return bless { node => $node, pid => $session->{pid}, names => [@names] }, $class;
}

sub await
{
	my ($self, $name) = @_;

	$self->{node}->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $self->{pid} AND wait_event = '$name'")
	  or die "does not come to $name";
	return;
}

sub go_on
{
	my ($self, $name) = @_;

	$self->{names} = [ grep { $_ ne $name } @{ $self->{names} } ];
	$self->{node}->safe_psql('postgres', "SELECT injection_points_detach('$name')");
	$self->{node}->safe_psql('postgres', qq{
		SELECT injection_points_wakeup('$name') FROM pg_stat_activity WHERE pid = $self->{pid} AND wait_event = '$name'});
	return;
}

sub finish
{
	my ($self) = @_;

	$self->go_on($_) foreach @{ $self->{names} };
	return;
}

package Stopped::ByDebugger;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(usleep);

my $times = 0;

# By files: "at-" tells that the process stands there, and waits for the "go-" of the same name.
sub new
{
	my ($class, $node, $session, @stops) = @_;
	my $self = bless { files => $node->basedir . '/stopped-' . ++$times, names => [] }, $class;
	my @steps;

	foreach my $stop (map { ref $_ ? $_ : [$_] } @stops)
	{
		my ($name, @commands) = @$stop;

		push @{ $self->{names} }, $name;
		push @steps, "break $name", "shell touch $self->{files}-on-$name", 'continue', 'delete', @commands,
		  "shell touch $self->{files}-at-$name; until test -e $self->{files}-go-$name; do sleep 0.1; done";
	}
	$self->{debugger} = eval {
		IPC::Run::start([ 'gdb', '-q', '-batch', '-nx', '-p', $session->{pid}, map { ('-ex', $_) } @steps, 'detach' ],
			'<', \undef, '>&', "$self->{files}.log");
	};
	return $self if $self->{debugger} && $self->wait_for("on-$self->{names}[0]") && slurp_file("$self->{files}.log") !~ /^ptrace:/m;
	$self->finish if $self->{debugger};
	return;
}

sub wait_for
{
	my ($self, $file) = @_;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if -e "$self->{files}-$file";
		return 0 unless $self->{debugger}->pumpable;
		usleep(100_000);
	}
	return 0;
}

sub await
{
	my ($self, $name) = @_;

	$self->wait_for("at-$name") or die "does not come to $name:\n" . slurp_file("$self->{files}.log");
	return;
}

sub go_on
{
	my ($self, $name) = @_;

	append_to_file("$self->{files}-go-$name", '');
	return;
}

sub finish
{
	my ($self) = @_;

	$self->go_on($_) foreach @{ $self->{names} };
	$self->{debugger}->finish;
	return;
}

1;
