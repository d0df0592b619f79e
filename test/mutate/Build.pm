# Build: the library with one file changed, by the commands that make would use; and a library that counts.
package Build;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(read_file write_file learn_commands build_with restore install_plain build_counting);

my $src = $ENV{SRC};
my $library = "$ENV{WORK}/server" . `$ENV{PG_CONFIG} --pkglibdir`;
chomp($library);
my $make = "make -s -C $src with_llvm=no PG_CONFIG=$ENV{PG_CONFIG}";
my $null = "$ENV{WORK}/compiler.log";
my (%compile, $link);

sub read_file
{
	my ($file) = @_;
	open(my $in, '<', $file) or die "$file: $!\n";
	local $/;
	return <$in>;
}

sub write_file
{
	my ($file, $text) = @_;
	open(my $out, '>', $file) or die "$file: $!\n";
	print $out $text;
	close($out) or die "$file: $!\n";
	return;
}

# All objects have been made by them: the parts of the library that stay are right as they are.
sub learn_commands
{
	foreach (split /\n/, `$make -n -B COPT=-g0 lockfence.so`)
	{
		$compile{$1} = $_ if m{ -c -o (src/\w+)\.o };
		$link = $_ if / -shared -o lockfence\.so /;
	}
	die "make does not tell how it builds\n" unless %compile && $link;
	return;
}

# Put in place anew: a server that is still running has the old one mapped.
sub install
{
	my ($file) = @_;
	system("cp $file $library/lockfence.so.new && mv $library/lockfence.so.new $library/lockfence.so") == 0 or die "cannot install $file\n";
	return;
}

sub install_plain { return install("$src/lockfence.so") }

# build_with(FILE, TEXT): the library in which the file has this text; "broken" if it does not compile or link, "same"
# if its object is what it was, otherwise "built", and installed.
sub build_with
{
	my ($file, $text) = @_;
	my $object = $file =~ s/\.c$//r;
	my $mutant = "$ENV{WORK}/mutant";

	write_file("$src/$file", $text);
	my $command = $compile{$object} =~ s{ -c -o \S+}{ -c -o $mutant.o}r;
	return 'broken' unless system("cd $src && $command >$null 2>&1") == 0;
	return 'same' if system("cmp -s $mutant.o $src/$object.o") == 0;
	$command = $link =~ s{ -o lockfence\.so }{ -o $mutant.so }r =~ s{ \Q$object\E\.o }{ $mutant.o }r;
	return 'broken' unless system("cd $src && $command >$null 2>&1") == 0;
	install("$mutant.so");
	return 'built';
}

# restore(FILE, TEXT): the file as it was; the objects were never touched.
sub restore
{
	my ($file, $text) = @_;
	write_file("$src/$file", $text);
	return;
}

# The library built to count what it executes, in a folder of its own, and installed; returns the folder.
sub build_counting
{
	my $folder = "$ENV{WORK}/counting";

	if (!-d $folder)
	{
		system("cp -a $src $folder && cd $folder && rm -f src/*.o lockfence.so && "
			. "make -s with_llvm=no PG_CONFIG=$ENV{PG_CONFIG} COPT='-O0 -g0 --coverage -U_FORTIFY_SOURCE' SHLIB_LINK=--coverage lockfence.so >$null 2>&1") == 0
		  or die "the counting library does not build\n" . read_file($null);
	}
	install("$folder/lockfence.so");
	return $folder;
}

1;
