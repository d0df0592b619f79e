# Suites: the tests, each with the lines that it comes to.
package Suites;

use strict;
use warnings;

use Exporter 'import';
use File::Basename;
use Time::HiRes qw(time);

use Server;

our @EXPORT = qw(SUITES tests_of run_tests measure comes_to);

use constant SUITES => qw(regress isolation unloaded tap validate pgtap drill);

my $src = $ENV{SRC};
my $bin = dirname(`sh -c 'command -v postgres'`);
chomp(my $pgxs = `$ENV{PG_CONFIG} --pgxs`);
$pgxs = dirname($pgxs) . '/..';

# A program that is given a running server, by the environment, and says by its status how it went.
my %PROGRAMS = (
	pgtap => [ 'sh', '-c', "createdb pgtap && pg_prove --dbname pgtap $src/test/pgtap/*.sql" ],
	drill => ["$src/test/drill/run"]);

sub names { return map { basename($_) =~ s/\.\w+$//r } sort glob("$src/$_[0]") }

sub tests { my ($suite, $kind, @names) = @_; return map { { suite => $suite, kind => $kind, name => $_ } } @names }

# tests_of(SUITE)
sub tests_of
{
	my ($suite) = @_;

	return tests($suite, $suite, names('test/sql/*.sql')) if $suite eq 'regress';
	return tests($suite, $suite, names('test/isolation/specs/*.spec')) if $suite eq 'isolation';
	return map { tests($suite, $_->{kind}, $_->{name}) } tests_of('regress'), tests_of('isolation') if $suite eq 'unloaded';
	return tests($suite, 'tap', map { "test/t/$_.pl" } names('test/t/*.pl')) if $suite eq 'tap';
	return tests($suite, 'tap', map { "test/validate/t/$_.pl" } grep { !/resolver/ } names('test/validate/t/*.pl')) if $suite eq 'validate';
	return tests($suite, 'program', $suite) if $PROGRAMS{$suite};
	die "no such suite: $suite\n";
}

my %REGRESS = (
	regress => [ 'regress/pg_regress', "--inputdir=$src/test", '--dbname=contrib_regression' ],
	isolation => [ 'isolation/pg_isolation_regress', "--inputdir=$src/test/isolation", '--dbname=isolation_regression' ]);

# How long a test may say nothing: as long as the machine may be five times as busy as when it was measured.
sub patience { my ($test) = @_; return 30 + 5 * ($test && $test->{seconds} // 60) }

# run_regress(KIND, TESTS): all in one database, up to the first that fails; undef, or that one and how.
sub run_regress
{
	my ($kind, @tests) = @_;
	my ($program, @options) = @{ $REGRESS{$kind} };
	my ($next, $failure) = (0, undef);

	local $ENV{PGOPTIONS} = '-c lockfence.unknown_resource=ignore';
	my $result = watch(
		[ "$pgxs/test/$program", @options, "--bindir=$bin", "--outputdir=$ENV{WORK}/output", '--use-existing', map { $_->{name} } @tests ],
		sub { patience($tests[$next]) },
		sub {
			my ($line) = @_;
			$failure = 'failed' if $line =~ /^not ok |\.\.\. FAILED/;
			$next++ if !$failure && $line =~ /^ok \d|\.\.\. ok /;
			return !$failure;
		});
	$failure = 'timeout' if $result eq 'timeout';
	$failure //= 'failed' if $next < @tests;
	return $failure ? { %{ $tests[$next] }, failure => $failure } : undef;
}

# run_single(TEST): of a TAP file or a program.
sub run_single
{
	my ($test) = @_;
	my @command = $test->{kind} eq 'program' ? @{ $PROGRAMS{ $test->{name} } }
	  : ('env', "PG_REGRESS=$pgxs/test/regress/pg_regress", "TESTLOGDIR=$ENV{WORK}/tap/log", "TESTDATADIR=$ENV{WORK}/tap/data",
		"TESTDIR=$ENV{WORK}/tap", 'LOCKFENCE_NAMESERVER=', 'perl', "-I$pgxs/test/perl", $test->{name});

	mkdir "$ENV{WORK}/tap";
	chdir $src;
	my $result = watch(\@command, sub { patience($test) }, sub { 1 });
	my $status = $?;

	stop_leftovers("$ENV{WORK}/tap");
	return { %$test, failure => 'timeout' } if $result eq 'timeout';
	return $status == 0 ? undef : { %$test, failure => 'failed' };
}

# run_tests(TESTS): all of one suite, up to the first that fails; undef, or that one and how.
sub run_tests
{
	my (@tests) = @_;

	foreach my $kind (qw(regress isolation tap program))
	{
		my @these = grep { $_->{kind} eq $kind } @tests or next;
		if ($kind ne 'tap')
		{
			my @settings = $these[0]{suite} eq 'unloaded' ? ('shared_preload_libraries=') : ();
			start_server(@settings) or return { %{ $these[0] }, failure => 'no server' };
		}
		my $failed;
		if ($REGRESS{$kind}) { $failed = run_regress($kind, @these) }
		else { foreach my $test (@these) { last if $failed = run_single($test) } }
		return $failed if $failed;
	}
	return;
}

# ---- which lines a test comes to ----

# The lines that have been executed since the counts were taken away: by file, "line line ...".
sub executed_lines
{
	my ($counted) = @_;
	my ($file, %lines);

	chdir $counted;
	open(my $gcov, '-|', "gcov -t src/*.gcda 2>/dev/null") or die "gcov: $!\n";
	while (<$gcov>)
	{
		if (/^ *-: *0:Source:(.*)/) { $file = $1 }
		elsif ($file =~ m{^src/\w+\.c$} && /^ *\d+\*?: *(\d+):/) { $lines{$file} .= " $1" }
	}
	close($gcov);
	return %lines;
}

sub file_of { my ($state, $test) = @_; return "$state/" . join('.', @{$test}{qw(suite kind)}, $test->{name} =~ s{/}{-}gr) }

# What a test is made of; when it changes, it is measured again.
sub inputs_of
{
	my ($test) = @_;
	my $name = $test->{name};
	my @files = $test->{kind} eq 'regress' ? ("test/sql/$name.sql")
	  : $test->{kind} eq 'isolation' ? ("test/isolation/specs/$name.spec") : ($name);

	return join(' ', map { (split ' ', `cksum $src/$_`)[0] } @files);
}

# take_lines(FOLDER, TEST): runs it alone; its time, and what it came to.
sub take_lines
{
	my ($counted, $test) = @_;
	my $start = time;

	unlink glob("$counted/src/*.gcda");
	my $failed = run_tests($test);
	my @said = @said;
	my $seconds = sprintf('%.1f', time - $start);
	stop_server('fast');
	die join("\n", @said), "\nwithout any change: $test->{suite} $test->{name} $failed->{failure}\n" if $failed;
	return ($seconds, executed_lines($counted));
}

# measure(STATE, COUNTED, TESTS): the time and the lines of each, from before or by running it with the library that
# counts, of which COUNTED is the folder.
sub measure
{
	my ($state, $counted, @tests) = @_;

	foreach my $test (@tests)
	{
		next if $test->{kind} eq 'program';
		my ($file, $inputs) = (file_of($state, $test), inputs_of($test));
		my ($known, @lines);

		if (open(my $in, '<', $file)) { chomp(($known, @lines) = <$in>); close($in) }
		if (($known // '') !~ /^\Q$inputs\E [\d.]+$/)
		{
			print "counting $test->{suite} $test->{name}\n";
			my ($seconds, %lines) = take_lines($counted->(), $test);
			@lines = map { "$_$lines{$_}" } sort keys %lines;
			$known = "$inputs $seconds";
			open(my $out, '>', "$file.new") or die "$file: $!\n";
			print $out "$_\n" foreach $known, @lines;
			close($out);
			rename("$file.new", $file);
		}
		($test->{seconds}) = $known =~ / ([\d.]+)$/;
		foreach (@lines) { my ($source, @numbers) = split ' '; $test->{lines}{$source} = { map { $_ => 1 } @numbers } }
	}
	return;
}

# Does the test kill servers?  What those executed has been counted by nothing.
sub crashes
{
	my ($test) = @_;

	return $test->{kind} eq 'tap' && !system("grep -qE \"'(immediate|KILL|QUIT)'\" $src/$test->{name}");
}

# comes_to(TESTS, FILE, LINE): those that do, or may.  A line of which nothing is known, the second of a
# statement say, counts as the nearest before.
sub comes_to
{
	my ($tests, $file, $line) = @_;
	my %has_code = map { %{ $_->{lines}{$file} // {} } } @$tests;

	$line-- while $line > 0 && !$has_code{$line};
	return grep { $_->{kind} eq 'program' || $_->{lines}{$file}{$line} || crashes($_) } @$tests;
}

1;
