# Whom the lock service has to be, who asks it, and who may say so.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../../t";
use IO::Socket::SSL;
use PostgreSQL::Test::Utils;
use Test::More;
use ValidateTest;

my $certs = new_certs();

# A service with this certificate, which wants one that the authority vouches for.
sub tls_service
{
	my ($name, %more) = @_;

	return new_service(
		SSL_cert_file => "$certs/$name.pem", SSL_key_file => "$certs/$name.key", SSL_ca_file => "$certs/ca.pem",
		SSL_verify_mode => SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, %more);
}

# The server's environment asks for the secrets of its TLS connections.
my $secrets = new_dir() . '/secrets';
local $ENV{SSLKEYLOGFILE} = $secrets;
my $node = validating_node('tls', <<"CONF");
listen_addresses = '127.0.0.1'
ssl = on
ssl_cert_file = '$certs/server.pem'
ssl_key_file = '$certs/server.key'
ssl_ca_file = ''
CONF
delete $ENV{SSLKEYLOGFILE};
my %ours = tls_settings($certs);
my $service = tls_service('server');

# asked(WHAT => VALUE, ...): what a new session hears with these settings instead of the right ones.
sub asked
{
	my (%other) = @_;
	my %setting = (url => $service->url, %ours, %other);

	configure($node, map { defined $setting{$_} ? ($_ => $setting{$_}) : () } keys %setting);
	my ($out, $err) = try_sql($node, 'postgres', "SELECT lockfence.validate('a', 5)");
	return $err =~ /ERROR:  (\w{5}):/ ? $1 : $out . $err;
}

# Nothing was asked: the request did not get through the handshake.
sub unasked_ok
{
	my ($asked, $name, %other) = @_;

	$asked->forget;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(asked(url => $asked->url, %other), 'LF008', $name);
	is($asked->count('request'), 0, "$name is not asked");
	return;
}

# ---- the service

is(asked(), 't', 'the service is who it should be');
my ($handshake) = $service->events('handshake');
like($handshake->{version}, qr/^TLSv1_[23]$/, 'over TLS 1.2 or later');
ok(!-e $secrets, 'the secrets of the connection are not written down, whatever the environment says');

my %IMPOSTOR = (
	elsewhere => 'a certificate of another host',
	expired => 'a certificate that has expired',
	future => 'a certificate that is not valid yet',
	alone => 'a certificate signed by itself',
	stranger => 'a certificate of another authority',
);
foreach my $name (sort keys %IMPOSTOR)
{
	unasked_ok(tls_service($name), "a service with $IMPOSTOR{$name}");
}
unasked_ok($service, 'a service, going by the wrong authority,', ca_file => "$certs/other_ca.pem");
unasked_ok($service, 'a service, going by no authority,', ca_file => undef);
unasked_ok($service, 'a service, going by a file that is missing,', ca_file => "$certs/missing.pem");
unasked_ok($service, 'a service, going by a file that is not a certificate,', ca_file => "$certs/ca.key");
my $plain = new_service();
unasked_ok($plain, 'a service without TLS', url => $plain->url =~ s/^http:/https:/r, timeout => 1000);

# What the operating system or the environment allows does not count: neither an authority nor an old TLS.
my $lenient = new_dir() . '/openssl.cnf';
append_to_file($lenient, <<'CONF');
openssl_conf = init
[init]
ssl_conf = ssl
[ssl]
system_default = lenient
[lenient]
MinProtocol = TLSv1
CipherString = ALL:@SECLEVEL=0
CONF
my %OLD = (SSL_version => 'TLSv1_1', SSL_cipher_list => 'ALL:@SECLEVEL=0');
{
	local $ENV{OPENSSL_CONF} = $lenient;
	local $ENV{SSL_CERT_FILE} = "$certs/other_ca.pem";
	local $ENV{SSL_CERT_DIR} = $certs;
	$node->restart;
	unasked_ok(tls_service('stranger'), 'a service of an authority that the environment names');
	unasked_ok(tls_service('server', %OLD), 'a service of TLS 1.1');
}
$node->restart;

# ---- who asks it

unasked_ok($service, 'a service that wants a certificate, without one,', cert_file => undef, key_file => undef);
unasked_ok($service, 'a service, with a certificate it does not take,', cert_file => "$certs/other.pem", key_file => "$certs/other.key");
unasked_ok($service, 'a service, with the wrong key,', key_file => "$certs/other.key");
unasked_ok($service, 'a service, with a certificate and no key,', key_file => undef);
unasked_ok($service, 'a service, with a key and no certificate,', cert_file => undef);
unasked_ok($service, 'a service, with a key that is missing,', key_file => "$certs/missing.key");
foreach my $mode (0644, 0640, 0604, 0660, 0700)
{
	chmod($mode, "$certs/client.key");
	unasked_ok($service, sprintf('a service, with a key of mode %04o,', $mode));
}
chmod(0400, "$certs/client.key");
is(asked(), 't', 'a key of mode 0400 is as good as one of 0600');
chmod(0600, "$certs/client.key");
run_command([ 'openssl', 'ec', '-in', "$certs/client.key", '-aes256', '-passout', 'pass:secret', '-out', "$certs/encrypted.key" ]);
like(slurp_file("$certs/encrypted.key"), qr/ENCRYPTED/, 'a key can be encrypted');
unasked_ok($service, 'a service, with a key that is encrypted,', key_file => "$certs/encrypted.key");
mkdir "$certs/directory.key";
chmod(0600, "$certs/directory.key");
unasked_ok($service, 'a service, with a directory for a key,', key_file => "$certs/directory.key");

# ---- where it is

foreach my $url ('', 'nonsense', 'https://', 'ftp://127.0.0.1/', 'file:///etc/passwd', 'gopher://127.0.0.1/',
	"http://localhost:$plain->{port}/", "http://127.0.0.1.example:$plain->{port}/", "http://192.0.2.1:$plain->{port}/",
	"http://127.0.0.1:$plain->{port}\@192.0.2.1/", "http://me:secret\@127.0.0.1:$plain->{port}/",
	"https://me\@127.0.0.1:$service->{port}/", $service->url . '#part')
{
	unasked_ok($plain, "the URL \"$url\"", url => $url);
}
is(asked(url => $plain->url), 't', 'a URL of http on loopback will do');

my $elsewhere = tls_service('elsewhere');
my $pinned = "locks.example:$elsewhere->{port}:127.0.0.1";
is(asked(url => $elsewhere->url('locks.example'), resolve => $pinned), 't', 'a host whose address is pinned is not looked up');
is($elsewhere->count('request'), 1, 'but asked there');
unasked_ok($elsewhere, 'a host of another name, pinned,', url => $elsewhere->url('lock.example'), resolve => "lock.example:$elsewhere->{port}:127.0.0.1");
unasked_ok($elsewhere, 'a host, with another one pinned,', url => $elsewhere->url('locks.example'), resolve => "lock.example:$elsewhere->{port}:127.0.0.1");
unasked_ok($elsewhere, 'a host, with another of its ports pinned,', url => $elsewhere->url('locks.example'), resolve => 'locks.example:1:127.0.0.1');

# ---- who may say so

my $evil = new_service();
my %THEIRS = (url => $evil->url, ca_file => "$certs/other_ca.pem", on_unavailable => 'open', timeout => 1);
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA lockfence TO app;
	GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lockfence TO app');
configure($node, url => $service->url, %ours);

# said(ROLE, SQL, connection options): what it wrote and its errors
sub said
{
	my ($role, $sql, @options) = @_;

	return join('', try_sql($node, 'postgres', $sql, connstr => $node->connstr('postgres') . " user=$role", @options));
}

foreach my $setting (sort keys %THEIRS)
{
	foreach my $role ('app', $ENV{USER} // getpwuid($<))
	{
		my $set = "SET lockfence_validate.$setting = '$THEIRS{$setting}'";
		like(said($role, "SELECT lockfence.validate('a', 5); $set; SELECT lockfence.validate('a', 5)"), qr/^t.*ERROR:  55P02:/s,
			"$role cannot set \"$setting\"");
		unlike(said($role, "$set; SELECT lockfence.validate('a', 5)"), qr/^f/m,
			"a \"$setting\" that $role sets before the library is loaded does not count");
		local $ENV{PGOPTIONS} = "-c lockfence_validate.$setting=$THEIRS{$setting}";
		unlike(said($role, "SELECT lockfence.validate('a', 5)"), qr/^f/m, 'nor one it comes with');
	}
}
is($evil->count('connect'), 0, 'the host that they name is never asked');

# Posture: an outage passes no token over because a session said "open" before the library came.
configure($node, url => 'http://127.0.0.1:' . unused_port() . '/', %ours);
like(said('app', "SET lockfence_validate.on_unavailable = 'open'; SELECT lockfence.validate('a', 5)"), qr/ERROR:  LF008:/,
	'"open" is not for a session to say');
{
	local $ENV{PGOPTIONS} = '-c lockfence_validate.on_unavailable=open';
	like(said('app', "SELECT lockfence.validate('a', 5)"), qr/ERROR:  LF008:/, 'or to come with');
}
like(said('app', "ALTER ROLE app SET lockfence_validate.on_unavailable = 'open'"), qr/^$|ERROR/, 'or for a role to keep');
like(said('app', "SELECT lockfence.validate('a', 5)"), qr/ERROR:  LF008:/, 'and it does not count');
like(said('app', 'SELECT lockfence.validate(\'a\', 5); SHOW lockfence_validate.key_file', on_error_stop => 0), qr/ERROR:  42501:/, 'where the key is, is told to superusers only');
$node->safe_psql('postgres', 'ALTER ROLE app RESET ALL');

# ---- a session that speaks TLS itself

my $script = new_dir() . '/script.sql';
my $good = "SELECT md5(string_agg(g::text, ',')) FROM generate_series(1, 2000) g;\n";
append_to_file($script, "SELECT 'ssl ' || ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid();\n"
	. "SELECT lockfence.validate('a', 5);\n" . $good x 1000 . "SELECT lockfence.validate('a', 5);\n" . $good);
foreach my $impostor (tls_service('expired'), tls_service('elsewhere'), tls_service('server', %OLD))
{
	configure($node, url => $impostor->url, %ours);
	my ($out, $err) = run_command([ 'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', '-f', $script, '-d',
		'host=127.0.0.1 port=' . $node->port . ' dbname=postgres sslmode=require' ]);
	my %lines;
	$lines{$_}++ foreach split(/\n/, $out);
	is($lines{'ssl true'}, 1, 'a session over TLS');
	is(join(',', sort { $a <=> $b } map { $lines{$_} } grep { /^[0-9a-f]{32}$/ } keys %lines), '1001',
		'has its 1,000 queries answered after a handshake that failed');
	is(scalar(() = $err =~ /ERROR:  LF008/g), 2, 'which failed');
}

$node->stop;
done_testing();
