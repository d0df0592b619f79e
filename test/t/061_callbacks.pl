# The server has few places for callbacks, ten for those on relations, and to take one too many is FATAL for every
# session: the library takes one of each kind, in one file.
use strict;
use warnings;

use FindBin;
use Test::More;

my @files = glob "$FindBin::RealBin/../../src/*.c";
my %calls;

foreach my $file (@files)
{
	open my $source, '<', $file or die "$file: $!";
	while (<$source>)
	{
		push @{ $calls{$1} }, $file =~ s{.*/}{}r
		  if /\b(CacheRegister\w+Callback|Register(?:Sub)?XactCallback)\s*\(/;
	}
}

is_deeply($calls{$_}, ['events.c'], "one $_()")
  for qw(CacheRegisterRelcacheCallback CacheRegisterSyscacheCallback RegisterXactCallback RegisterSubXactCallback);
is(keys %calls, 4, 'and no others');

done_testing();
