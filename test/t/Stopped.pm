# Stopped: a session's process, stopped by a debugger where a function begins, for races whose window is no longer than
# some instructions.
#
#   my $stopped = Stopped->new($node, $pid, 'function', 'other_function') or plan skip_all => ...;
#   ... start a statement that calls them ...
#   $stopped->await('function');		# it stands there
#   $stopped->go_on('function');		# on to the next, or for good
#   $stopped->finish;
#
# Instead of a function's name, [ NAME, COMMAND... ] has the debugger do something where it begins.
package Stopped;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(usleep);

my $times = 0;

# By files: "at-" tells that the process stands there, and waits for the "go-" of the same name.
sub new
{
	my ($class, $node, $pid, @stops) = @_;
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
		IPC::Run::start([ 'gdb', '-q', '-batch', '-nx', '-p', $pid, map { ('-ex', $_) } @steps, 'detach' ],
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
