# What run calls, in the tree that it has built, as the server's user.
use strict;
use warnings;

use FindBin;
use Getopt::Long;
use lib $FindBin::RealBin;

use Build;
use Mutants;
use Server;
use Suites;

$| = 1;

my %option = (seed => 1, count => 300, files => '.', suites => join(',', SUITES), tests => '.', part => '1/1');
GetOptions(\%option, 'seed=i', 'count=i', 'files=s', 'suites=s', 'tests=s', 'budget=i', 'part=s', 'survivors', 'try=s', 'state=s') or exit 64;

my @suites = split /[ ,]+/, $option{suites};
my %text;		# of each file of src/
my %tests;		# of each suite asked for
my %result;		# of each change that has been tried, by its name
my %noticed;	# how many changes of a file a test has noticed
my $results;	# the file in which they are kept

sub load_sources
{
	chdir $ENV{SRC};
	$text{$_} = read_file($_) foreach sort glob('src/*.c');
	return;
}

sub checksum { return (split ' ', `cat $_[0] | cksum`)[0] }

# The state of these very sources; results, of a library whose tests may have become more since.
sub open_state
{
	my $state = "$option{state}/" . checksum("$ENV{SRC}/src/*.[ch]");

	mkdir $state;
	$results = "$state/results";
	foreach (-e $results ? split(/\n/, read_file($results)) : ())
	{
		my ($name, $verdict, $by) = split /\t/;
		learn($name, $verdict, $by);
	}
	return $state;
}

sub learn
{
	my ($name, $verdict, $by) = @_;
	my ($file) = $name =~ /^([^:]+)/;

	$result{$name} = { verdict => $verdict, by => $by };
	$noticed{$file}{$by}++ if $verdict eq 'failed';
	return;
}

sub keep
{
	my ($name, $verdict, $by) = @_;

	learn($name, $verdict, $by);
	open(my $out, '>>', $results) or die "$results: $!\n";
	print $out "$name\t$verdict\t$by\n";
	close($out);
	return;
}

# ---- which changes ----

sub shuffle
{
	my @list = @_;

	for (my $i = @list; --$i > 0;)
	{
		my $j = int(rand($i + 1));
		@list[ $i, $j ] = @list[ $j, $i ];
	}
	return @list;
}

# One change of each file first, so that none is left out, then of all alike.
sub random_changes
{
	my (@first, @rest);

	srand($option{seed});
	foreach my $file (grep { /$option{files}/ } sort keys %text)
	{
		my ($one, @others) = shuffle(mutants_of($file, $text{$file}));
		push @first, $one if $one;
		push @rest, @others;
	}
	return (shuffle(@first), shuffle(@rest));
}

# The changes that a file lists.
sub listed_changes
{
	my @changes;

	foreach (grep { /^[^#]/ } split /\n/, read_file($option{try}))
	{
		my ($file, $old, $new) = split /\t/;
		s/\\n/\n/g, s/\\t/\t/g foreach $old, $new //= '';
		my $place = index($text{$file} // die("$file?\n"), $old);
		die "$file does not have once: $old\n" if $place < 0 || index($text{$file}, $old, $place + 1) >= 0;
		push @changes, { file => $file, place => $place, length => length($old), new => $new };
	}
	return @changes;
}

# The line as it is and as it becomes, after its place.
sub name_of
{
	my ($change) = @_;
	my $text = $text{ $change->{file} };
	my $number = line_of($text, $change);
	my $old = substr($text, $change->{place}, $change->{length});
	my $line = (split /\n/, $text)[ $number - 1 ];
	my $column = 1 + $change->{place} - rindex($text, "\n", $change->{place} - 1) - 1;

	($old, my $new) = $change->{also} ? ('the condition', 'its opposite') : ($old, $change->{new} =~ /^\(void\) 0/ ? 'nothing' : $change->{new});
	s/\s+/ /g, s/^ $/nothing/, s/^(.{100}).+/$1.../ foreach $old, $new, $line;
	return "$change->{file}:$number:$column: $old -> $new: " . ($line =~ s/^ //r);
}

# ---- running the tests ----

# tests_to_run(CHANGE, SUITE): the tests that come to its line, the most likely to notice it first; and whether the
# budget allows all of them.
sub tests_to_run
{
	my ($change, $suite) = @_;
	my $file = $change->{file};
	my $has_noticed = sub { $noticed{$file}{"$_[0]{suite} $_[0]{name}"} // 0 };
	my $lines_per_second = sub { keys(%{ $_[0]{lines}{$file} // {} }) / (1 + ($_[0]{seconds} // 0)) };
	my @tests = sort { $has_noticed->($b) <=> $has_noticed->($a) || $lines_per_second->($b) <=> $lines_per_second->($a) }
	  comes_to($tests{$suite}, $file, line_of($text{$file}, $change));
	my ($seconds, $all) = (0, $option{tests} ne '.' ? -1 : scalar @tests);

	@tests = grep { ($seconds += $_->{seconds} // 0) <= $option{budget} } @tests if $option{budget};
	return (@tests == $all, @tests);
}

# try_suites(CHANGE, SUITES): the first test that notices it, or else the suites as they were run: a part of one with
# the budget.
sub try_suites
{
	my ($change, @untried) = @_;
	my @tried;

	foreach my $suite (@untried)
	{
		my ($all, @tests) = tests_to_run($change, $suite);
		my $failed = @tests ? run_tests(@tests) : undef;
		return ($failed) if $failed;
		push @tried, $all ? $suite : "$suite<" . ($option{budget} // 0);
	}
	return (undef, @tried);
}

# has_survived(SURVIVED, SUITE): as far as it is run now.
sub has_survived
{
	my ($survived, $suite) = @_;

	return 0 if $option{tests} ne '.';
	return $survived->{$suite} || ($option{budget} && $survived->{"$suite<$option{budget}"});
}

# judge(CHANGE, NAME): by those suites that it has not survived before.
sub judge
{
	my ($change, $name) = @_;
	my $before = $result{$name};
	my %survived = map { $_ => 1 } $before && $before->{verdict} eq 'survived' ? split(/,/, $before->{by}) : ();
	my @untried = grep { !has_survived(\%survived, $_) } @suites;

	return if $before && ($before->{verdict} ne 'survived' || !@untried);
	my $built = build_with($change->{file}, apply($text{ $change->{file} }, $change));
	my ($failed, @tried) = $built eq 'built' ? try_suites($change, @untried) : ();
	stop_server();
	restore($change->{file}, $text{ $change->{file} });
	if ($built ne 'built') { keep($name, $built, '') }
	elsif ($failed) { keep($name, $failed->{failure}, "$failed->{suite} $failed->{name}") }
	else { keep($name, 'survived', join(',', sort keys(%{ { %survived, map { $_ => 1 } @tried } }))) }
	print "$result{$name}{verdict} $result{$name}{by}\t$name\n" if $built eq 'built';
	return;
}

sub is_counted { my ($name) = @_; return $result{$name}{verdict} !~ /^(broken|same)$/ }

# ---- the report ----

sub report
{
	my (@names) = @_;
	my @survivors = grep { $result{$_}{verdict} eq 'survived' } @names;
	my (%by, %how);

	foreach my $name (@names)
	{
		my ($suite) = split ' ', $result{$name}{by};
		$how{ $result{$name}{verdict} }++;
		$by{$suite}++ if $result{$name}{verdict} ne 'survived';
	}
	printf("\n%d changes, %d noticed, %d survived%s\n", scalar @names, @names - @survivors, scalar @survivors,
		$option{try} ? '' : ", with seed $option{seed}");
	print "  noticed by $_: $by{$_}\n" foreach grep { $by{$_} } SUITES;
	print "  of these by being late: $how{timeout}\n" if $how{timeout};
	print "survived $result{$_}{by}\n  $_\n" foreach sort @survivors;
	return @names && @survivors * 20 <= @names;
}

load_sources();
my $state = open_state();
make_template();
$tests{$_} = [ grep { $_->{name} =~ m{$option{tests}} } tests_of($_) ] foreach @suites;
measure($state, \&build_counting, map { @{ $tests{$_} } } @suites);
learn_commands();
install_plain();

my ($part, $parts) = split '/', $option{part};
my ($number, @names) = (0);
foreach my $change ($option{try} ? listed_changes() : random_changes())
{
	my $name = name_of($change);
	last if !$option{try} && @names >= $option{count} / $parts;
	next unless ++$number % $parts == $part % $parts;
	next if $option{survivors} && ($result{$name}{verdict} // '') ne 'survived';
	judge($change, $name);
	push @names, $name if is_counted($name);
}
exit(report(@names) ? 0 : 1);
