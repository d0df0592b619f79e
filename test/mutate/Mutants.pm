# Mutants: every change that may be made to a C source, one operator, constant or call at a time.
#
# A reader of tokens, not of C: a change that does not compile is found out by the compiler.  Assertions and
# the preprocessor's lines are left alone, since the first are compiled out of a packaged server, and the second
# mostly choose between versions of it.
package Mutants;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(mutants_of apply line_of);

my %OPERATORS = (
	'<' => [ '<=', '>=' ],
	'<=' => [ '<', '>' ],
	'>' => [ '>=', '<=' ],
	'>=' => [ '>', '<' ],
	'==' => ['!='],
	'!=' => ['=='],
	'&&' => ['||'],
	'||' => ['&&'],
	'+' => ['-'],
	'-' => ['+'],
	'*' => ['+'],
	'/' => ['*'],
	'%' => ['/'],
	'&' => ['|'],
	'|' => ['&'],
	'^' => ['|'],
	'<<' => ['>>'],
	'>>' => ['<<'],
	'+=' => [ '-=', '=' ],
	'-=' => [ '+=', '=' ],
	'|=' => [ '&=', '=' ],
	'&=' => [ '|=', '=' ],
	'++' => ['--'],
	'--' => ['++'],
	'!' => [' ']);

my %CONSTANTS = (true => ['false'], false => ['true']);

# The text with comments, strings, assertions and the preprocessor's lines blanked, so that places stay.
sub blank
{
	my ($text) = @_;
	my $hide = sub { my ($s) = @_; $s =~ s/[^\n]/ /g; return $s };

	$text =~ s{(/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')}{$hide->($1)}ges;
	$text =~ s{^([ \t]*#(?:[^\n]*\\\n)*[^\n]*)}{$hide->($1)}gem;
	$text =~ s{\b((?:Static)?Assert(?:Macro|Stmt|Decl|VariableIsOfType)*\s*(\((?:[^()]++|(?2))*\)))}{$hide->($1)}ge;
	return $text;
}

# Where functions' bodies are: a list of [start, end).
sub bodies
{
	my ($blank) = @_;
	my @bodies;

	push @bodies, [ $-[1], $+[1] ] while $blank =~ /^(\{\n.*?^\})\n/gms;
	return @bodies;
}

sub is_within
{
	my ($place, @ranges) = @_;
	return scalar grep { $place >= $_->[0] && $place < $_->[1] } @ranges;
}

# [place, length, replacements]
sub operators_in
{
	my ($blank) = @_;
	my @found;

	while ($blank =~ /(->|\+\+|--|<<=|>>=|<<|>>|[-+|&]=|[<>=!]=|&&|\|\||[-+*\/%&|^<>!])/g)
	{
		my ($operator, $place, $end) = ($1, $-[1], $+[1]);
		my $is_apart = substr($blank, $place - 1, 1) =~ /\s/ && substr($blank, $end, 1) =~ /\s/;

		# unary minus, addresses and pointers have no space behind them
		next if !$OPERATORS{$operator} || (!$is_apart && $operator !~ /^(\+\+|--|!)$/);
		push @found, [ $place, length($operator), $OPERATORS{$operator} ];
	}
	return @found;
}

sub constants_in
{
	my ($blank) = @_;
	my @found;

	push @found, [ $-[1], length($1), $CONSTANTS{$1} ] while $blank =~ /\b(true|false)\b/g;
	while ($blank =~ /(?<![\w.])(\d+)([uUlL]*)(?![\w.])/g)
	{
		push @found, [ $-[0], $+[0] - $-[0], [ ($1 + 1) . $2, $1 > 0 ? ($1 - 1) . $2 : () ] ];
	}
	return @found;
}

# Conditions, turned round; where there is one comparison, or nothing but "!", its operator does that.
sub conditions_in
{
	my ($blank) = @_;
	my @found;

	while ($blank =~ /\b(?:if|while)\s*(\((?:[^()]++|(?1))*\))/g)
	{
		my ($place, $end, $condition) = ($-[1], $+[1], $1);
		my $operators = () = $condition =~ /[<>=!]=|[<>]|&&|\|\||!/g;

		push @found, [ $place, 1, ['(!('], [ $end - 1, 1, '))' ] ] if $operators != 1;
	}
	return @found;
}

# Calls that are statements, left out; their lines stay.
sub calls_in
{
	my ($blank) = @_;
	my @found;

	while ($blank =~ /(?<=[;{})])\s*(?:\belse\s+)?((?:\(void\)\s*)?\b([A-Za-z_]\w*)(\((?:[^()]++|(?3))*\));)/g)
	{
		my ($place, $end, $name) = ($-[1], $+[1], $2);
		pos($blank) = $end - 1;
		next if $name =~ /^(?:if|while|for|switch|return|sizeof|do|else|case|PG_\w+)$/;
		push @found, [ $place, $end - $place, [ '(void) 0;' . ("\n" x (substr($blank, $place, $end - $place) =~ tr/\n//)) ] ];
	}
	return @found;
}

# mutants_of(FILE, TEXT): in the order of the text; each with file, place, length, replacement and perhaps a
# second replacement further on.
sub mutants_of
{
	my ($file, $text) = @_;
	my $blank = blank($text);
	my @bodies = bodies($blank);
	my @mutants;

	foreach my $site (
		sort { $a->[0] <=> $b->[0] || $b->[1] <=> $a->[1] }
		operators_in($blank), constants_in($blank), conditions_in($blank), calls_in($blank))
	{
		my ($place, $length, $replacements, $also) = @$site;

		next if !is_within($place, @bodies);
		push @mutants, { file => $file, place => $place, length => $length, new => $_, also => $also } foreach @$replacements;
	}
	return @mutants;
}

# apply(TEXT, MUTANT): the text with the change made.
sub apply
{
	my ($text, $mutant) = @_;

	substr($text, $mutant->{also}[0], $mutant->{also}[1]) = $mutant->{also}[2] if $mutant->{also};
	substr($text, $mutant->{place}, $mutant->{length}) = $mutant->{new};
	return $text;
}

sub line_of
{
	my ($text, $mutant) = @_;
	return 1 + (substr($text, 0, $mutant->{place}) =~ tr/\n//);
}

1;
