# lockfence.validator in a server that does not preload the library: until a session loads it, the setting
# is a placeholder that any role may set.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FenceTest;
use Test::More;

my $node = fenced_node('default_validator');

$node->safe_psql('postgres', q{
	CREATE ROLE writer LOGIN;
	GRANT EXECUTE ON FUNCTION lockfence.present(text, lockfence.fence_token) TO writer;
	CREATE FUNCTION never(resource text, token bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
	ALTER DATABASE postgres SET lockfence.validator = 'public.never(text, bigint)';
});

my $poison = q{SELECT lockfence.present('lock', 9223372036854775807)};

sub refused_as
{
	my ($role, $options, $sql, $code, $name) = @_;
	local $ENV{PGOPTIONS} = $options;
	my (undef, undef, $err) = $node->psql('postgres', $sql,
		extra_params => [ '-U', $role, '-v', 'VERBOSITY=verbose' ]);
	like($err, qr/ERROR:  $code:/, $name);
	return;
}

refused_as('writer', '', $poison, 'LF007', 'the database names a validator');
refused_as('writer', '', "SET lockfence.validator = ''; $poison", 'LF007',
	'set to nothing before the library is loaded');
refused_as('writer', '-c lockfence.validator=', $poison, 'LF008', 'connected with nothing in its place');
refused_as('writer', '-c lockfence.validator=public.other(text,bigint)', $poison, 'LF008',
	'connected with another in its place');
mark_is($node, 'postgres', 'lock', '', 'nothing passed');

# A role that may set it may do so on connecting, too.
{
	local $ENV{PGOPTIONS} = '-c lockfence.validator=';
	accepted_ok($node, 'postgres', q{SELECT lockfence.present('lock', 10)}, 'a superuser sets it on connecting');
}

# From the server's configuration; a session that hid it asks again after a reload.
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET lockfence.validator');
$node->append_conf('postgresql.conf', q{lockfence.validator = 'public.never(text, bigint)'});
$node->reload;
refused_as('writer', '', $poison, 'LF007', 'the configuration names a validator');
refused_as('writer', '-c lockfence.validator=', $poison, 'LF008', 'it is hidden in the same way');
mark_is($node, 'postgres', 'lock', '10', 'nothing passed but what the superuser let pass');

done_testing();
