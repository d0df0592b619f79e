# Certs: a throw-away authority, and certificates that are in order or are not.
package Certs;

use strict;
use warnings;

use Exporter 'import';
use IO::Socket::SSL::Utils;

our @EXPORT_OK = qw(make_certs);

my $DAY = 86400;

sub write_cert
{
	my ($dir, $name, $cert, $key) = @_;

	umask(0077);
	PEM_cert2file($cert, "$dir/$name.pem");
	PEM_key2file($key, "$dir/$name.key");
	return;
}

# In DIR: NAME.pem and NAME.key of
#   ca, other_ca       authorities; the second vouches for nothing here
#   server             127.0.0.1 and localhost
#   elsewhere          locks.example, which is another host
#   expired, future    as server, outside their time
#   alone              as server, signed by itself
#   stranger           as server, signed by other_ca
#   client, other      of clients; the second signed by other_ca
sub make_certs
{
	my ($dir) = @_;
	my @here = ([ IP => '127.0.0.1' ], [ DNS => 'localhost' ]);
	my %ca;

	mkdir $dir;
	my $make = sub {
		my ($name, $issuer, %params) = @_;
		my ($cert, $key) = CERT_create(
			subject => { commonName => $name }, key => KEY_create_ec('prime256v1'),
			not_before => time() - $DAY, not_after => time() + 7 * $DAY, digest => 'sha256',
			($issuer ? (issuer => $ca{$issuer}) : ()), %params);
		write_cert($dir, $name, $cert, $key);
		return [ $cert, $key ];
	};
	$ca{$_} = $make->($_, undef, CA => 1) foreach qw(ca other_ca);
	my %server = (purpose => 'server', subjectAltNames => \@here);
	$make->('server', 'ca', %server);
	$make->('elsewhere', 'ca', %server, subjectAltNames => [ [ DNS => 'locks.example' ] ]);
	$make->('expired', 'ca', %server, not_before => time() - 3 * $DAY, not_after => time() - $DAY);
	$make->('future', 'ca', %server, not_before => time() + $DAY);
	$make->('alone', undef, %server);
	$make->('stranger', 'other_ca', %server);
	$make->('client', 'ca', purpose => 'client');
	$make->('other', 'other_ca', purpose => 'client');
	return;
}

1;
