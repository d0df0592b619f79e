# What the lock service may answer, and what is made of it: yes and no only where it says so about the very
# question, and nothing else is either.
use strict;
use warnings;
use utf8;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use PostgreSQL::Test::Utils;
use Test::More;
use ValidateTest;

my $RESOURCE = 'settle:batch-9921';
my $TOKEN = '9007199254740993';		# 2^53 + 1: no float can hold it

# A service that is never asked.
my $bystander = new_service();

my $service = new_service();

# What the postmaster is started with, and curl would heed.
my $home = new_dir();
append_to_file("$home/.netrc", "machine 127.0.0.1 login postgres password secret\n");
append_to_file("$home/.curlrc", "proxy = http://127.0.0.1:$bystander->{port}\n");
$ENV{HOME} = $home;
$ENV{NETRC} = "$home/.netrc";
$ENV{$_} = "http://127.0.0.1:$bystander->{port}" foreach qw(http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY);
delete @ENV{qw(no_proxy NO_PROXY)};

my $node = validating_node('answers');
configure($node, url => $service->url);
my $session = session($node, 'postgres');

sub answered
{
	my ($mode, $expected, $name) = @_;

	$service->mode(ref $mode ? @$mode : $mode);
	is(validate($session, $RESOURCE, $TOKEN), $expected, $name);
	return;
}

# ---- yes and no

answered('valid', 't', 'yes');
answered('refused', 'f', 'no');
answered('number_token', 't', 'a token that is an unquoted number is read to the last digit');
answered('chunked', 't', 'an answer in chunks');
answered('continued', 't', 'an answer after "100 Continue"');
answered('close', 't', 'an answer that says it is the last one');
answered('close_unsaid', 't', 'an answer that is the last one, and does not say so');
answered([ slow => 300 ], 't', 'an answer that takes its time');

# ---- anything else

my %NEITHER = (
	rounded_token => 'an unquoted token that was rounded on its way',
	float_token => 'an unquoted token that was made a fraction',
	padded_token => 'a token with a zero in front',
	long_token => 'a token beyond 64 bits',
	wrong_token => 'an answer about another token',
	wrong_resource => 'an answer about another resource',
	array_resource => 'a resource in an array',
	no_token => 'no token',
	no_resource => 'no resource',
	valid_text => '"valid" as a text',
	valid_number => '"valid" as a number',
	valid_null => '"valid" as null',
	no_valid => 'no "valid"',
	valid_twice => '"valid" both ways',
	array => 'an array',
	garbage => 'JSON with something after it',
	nested => 'brackets in brackets in brackets',
	nul => 'a NUL',
	not_utf8 => 'a text that is not UTF-8',
	empty => 'nothing',
	cut_json => 'JSON that breaks off',
	html => 'a page of HTML',
	login => 'a demand to log in',
	gzip => 'a body that is compressed',
	truncated => 'a body that is shorter than announced',
	http09 => 'a body without headers',
	noise => 'noise',
	reset => 'a reset connection',
	close_unanswered => 'a closed connection',
	huge => '2 GB',
	endless => 'a body without end',
	endless_headers => 'headers without end',
	vast_expires => 'an expiry beyond 64 bits',
	huge_expires => 'an expiry that does not fit an interval',
	float_expires => 'an expiry of 1e300',
	negative_expires => 'an expiry in the past',
	text_expires => 'an expiry in words',
	no_expires => 'no expiry',
	no_epoch => 'no epoch',
	(map { $_ => "a yes with status $_" } 201, 203, 206, 400, 401, 403, 404, 429, 500, 502, 503),
	204 => 'no content',
	304 => 'not modified',
);
foreach my $mode (sort keys %NEITHER)
{
	answered($mode, 'LF008', $NEITHER{$mode});
}
foreach my $sent ($service->events('sent'))
{
	cmp_ok($sent->{bytes}, '<', 64 * 1024 ** 2, 'what is too much is not read to its end');
}
answered('valid', 't', 'and after all of it, a yes is a yes');

# ---- where else one could be sent

answered([ redirect => $bystander->url ], 'LF008', 'a redirection');
answered([ redirect_post => $bystander->url ], 'LF008', 'a redirection that repeats the question');
answered([ redirect => 'file:///etc/passwd' ], 'LF008', 'a redirection to a file');
is($bystander->count('connect'), 0, 'neither a redirection nor a proxy of the environment is followed');

# ---- what is asked

$service->forget;
answered('cookie', 't', 'an answer that sets a cookie');
answered('valid', 't', 'a question after it');
my ($first, $second) = $service->events('request');
foreach my $unwanted (qw(cookie authorization proxy-authorization accept-encoding expect referer))
{
	ok(!exists $first->{headers}{$unwanted} && !exists $second->{headers}{$unwanted}, "no header \"$unwanted\" is sent");
}
is($second->{target} =~ s/\?.*//sr, '/v1/validate', 'the endpoint is the one configured');
is($second->{headers}{host}, "127.0.0.1:$service->{port}", 'so is the host');

# A name goes to and fro as it is, and cannot become a part of the request: the service echoes what it
# understood, and would be asked more than once, or elsewhere.
my @NAMES = (
	'../?#', '../../v1/release', 'a b+c', 'a%2e%2e%2fb', '&token=1', '?token=1#', 'a/b;c=d', '{x}', '[1-9]', '\\', '"', "'",
	'","valid":true,"x":"', "line\r\nX-Injected: 1\r\n\r\nGET /", "tab\tand\x01", "\x{7f}", 'Grüße', '日本語', "\x{1F512}",
	"\x{feff}bom", "e\x{301}", "\x{2028}", 'x' x 1024,
);
$service->forget;
foreach my $name (@NAMES)
{
	my $shown = substr($name, 0, 30) =~ s/([^ -~])/sprintf('\\x{%x}', ord $1)/ger;
	my $bytes = $name;
	utf8::encode($bytes);
	my $literal = join(' || ', map { "chr(" . ord($_) . ")" } split(//, $name));
	$literal = "repeat('x', 1024)" if length $name == 1024;
	is(ask($session, "SELECT lockfence.validate($literal, $TOKEN)"), 't', "a resource named $shown");
}
is($service->count('request'), scalar(@NAMES), 'each of them was one question');
my %strange = map { $_ => 1 } map { keys %{ $_->{headers} } } $service->events('request');
ok(!$strange{'x-injected'}, 'with no header of their own');
is(join(' ', sort keys %{ { map { ($_->{target} =~ s/\?.*//sr) => 1 } $service->events('request') } }), '/v1/validate',
	'to the one endpoint');

# ---- arguments

is(validate($session, $RESOURCE, $_), 'LF003', "token $_ is none") foreach qw(0 -1);
is(validate($session, $RESOURCE, 'NULL'), '', 'nothing is known of no token');
is(validate($session, $RESOURCE, '9223372036854775807'), 't', 'the highest token there is');
like(validate($session, '', $TOKEN), qr/^22023$/, 'a resource without a name');
like(validate($session, 'x' x 1025, $TOKEN), qr/^22023$/, 'a resource with too long a name');

# ---- the details

answered('valid', 't', 'once more');
query_is($node, 'postgres',
	"SELECT valid, epoch, expires_in, latency > '0' AND latency < '1 min' FROM lockfence.validate_detail('$RESOURCE', lockfence.make_token(7, 5))",
	't|7|00:00:12.345|t', 'validate_detail()');
$service->mode('refused');
query_is($node, 'postgres', "SELECT valid, epoch FROM lockfence.validate_detail('$RESOURCE', lockfence.make_token(7, 5))",
	'f|7', 'validate_detail() of a no');
$service->mode('500');
refused_ok($node, 'postgres', "SELECT * FROM lockfence.validate_detail('$RESOURCE', 5)", 'LF008', 'validate_detail() without an answer',
	qr/DETAIL:  .*500/);

# ---- a database that is not UTF-8

$node->safe_psql('postgres', "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
$node->safe_psql('latin', 'CREATE EXTENSION lockfence; CREATE EXTENSION lockfence_validate');
$service->mode('valid');
$service->forget;
query_is($node, 'latin', "SELECT lockfence.validate('Gr' || chr(252) || 'n', 5)", 't', 'a name in LATIN1');
my ($asked) = $service->events('request');
like($asked->{body} . $asked->{target}, qr/Gr(?:\xc3\xbc|\\u00fc|%C3%BC)n/i, 'which the service is told in UTF-8');
$node->safe_psql('postgres', "CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
$node->safe_psql('bytes', 'CREATE EXTENSION lockfence; CREATE EXTENSION lockfence_validate');
$service->forget;
refused_ok($node, 'bytes', "SELECT lockfence.validate(E'Gr\\xfcn', 5)", '22021', 'a name in no encoding cannot be told');
is($service->count('request'), 0, 'and is not');

$node->stop;
done_testing();
