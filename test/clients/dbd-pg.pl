# The block of docs/clients.md, called as run asks for.  Prints "done", or "refused" and the SQLSTATE.
use strict;
use warnings;
use DBI;

# BLOCK

my ($what, $token) = @ARGV;
my $write = "UPDATE batch SET state = 'settled' WHERE batch_id = 9921";
my $dbh = $what eq 'granted' ? connect_granted($token) : DBI->connect('dbi:Pg:', '', '', { RaiseError => 1 });
$dbh->{PrintError} = 0;
my %calls = (
	takeover => sub { take_over($dbh, $token) },
	settle => sub { settle($dbh, $token) },
	granted => sub { $dbh->do($write) },
	environment => sub { $dbh->do($write) },
	guarded => sub {
		$dbh->do("SELECT lockfence.guarded_update('batch', ?, ?, ?)", undef, '{"batch_id": 9921}', '{"state": "settled"}', $token);
	});
my $state;
$dbh->{HandleError} = sub { $state //= $_[1]->state; return 0 };
if (eval { $calls{$what}->(); 1 })
{
	print "done\n";
}
else
{
	print 'refused ', $state // $@, "\n";
	$dbh->do('SELECT 1');
}
