# Server: a private server, made anew from a template for every change, since a test that failed leaves things behind;
# and programs that are given so much time and no more.
package Server;

use strict;
use warnings;

use Exporter 'import';
use IO::Select;
use POSIX qw(:sys_wait_h setpgid);

our @EXPORT = qw(make_template start_server stop_server stop_leftovers watch succeeds @said);

my $data = "$ENV{WORK}/data";
my $template = "$ENV{WORK}/template";
my $log = "$ENV{WORK}/server.log";
our @said;		# by the last program, line by line

# watch(COMMAND, LIMIT, SEE): gives each line that the command writes to SEE, until that says no, or the command
# ends, or is silent for LIMIT->() seconds.  Returns "stopped", "ended" or "timeout"; no process of its group is left.
sub watch
{
	my ($command, $limit, $see) = @_;
	my ($result, $rest) = (undef, '');

	pipe(my $out, my $in) or die "pipe: $!\n";
	my $pid = fork() // die "fork: $!\n";
	if ($pid == 0)
	{
		setpgid(0, 0);
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>&', $in);
		open(STDERR, '>&', $in);
		exec(@$command) or exit 127;
	}
	close($in);
	my $select = IO::Select->new($out);
	@said = ();
	until ($result)
	{
		if (!$select->can_read($limit->())) { $result = 'timeout' }
		elsif (!sysread($out, $rest, 65536, length($rest))) { $result = 'ended' }
		while (!$result && $rest =~ s/^(.*)\n//)
		{
			push @said, $1;
			$result = 'stopped' unless $see->($said[-1]);
		}
	}
	end_group($pid) if $result ne 'ended';
	waitpid($pid, 0);
	return $result;
}

# Programs clean up after them when they are asked to end.
sub end_group
{
	my ($pid) = @_;
	my $patience = 200;

	kill('TERM', -$pid);
	select(undef, undef, undef, 0.1) while waitpid($pid, WNOHANG) == 0 && $patience-- > 0;
	kill('KILL', -$pid);
	return;
}

# stop_leftovers(FOLDER): the servers whose data is somewhere in it.
sub stop_leftovers
{
	my ($folder) = @_;

	foreach my $file (split /\n/, `find $folder -name postmaster.pid`)
	{
		kill_postmaster($_) foreach running($file);
	}
	system("rm -rf $folder");
	return;
}

# succeeds(LIMIT, COMMAND...): whether it ends with status 0 within so many seconds without a word.
sub succeeds
{
	my ($limit, @command) = @_;
	return watch(\@command, sub { $limit }, sub { 1 }) eq 'ended' && $? == 0;
}

# The databases of pg_regress and pg_isolation_regress, as they would make them; the extension is made once, by the library
# as it is.
sub make_databases
{
	system("pg_ctl -s -w -D $template -l $log start") == 0 or die "the template does not start\n";
	foreach my $database (qw(contrib_regression isolation_regression))
	{
		my $settings = join(' ', map { qq(-c "ALTER DATABASE $database SET $_") } 'lc_messages = \'C\'', 'lc_monetary = \'C\'',
			'lc_numeric = \'C\'', 'lc_time = \'C\'', 'bytea_output = \'hex\'', 'timezone_abbreviations = \'Default\'');

		system("psql -Xq -c 'CREATE DATABASE $database TEMPLATE template0' $settings &&"
			. " psql -Xq -d $database -c 'CREATE EXTENSION lockfence'") == 0 or die "cannot make $database\n";
	}
	system("pg_ctl -s -w -D $template stop") == 0 or die "the template does not stop\n";
	return;
}

sub make_template
{
	return if -d $template;
	$ENV{PGHOST} = $ENV{WORK};
	$ENV{PGUSER} = 'postgres';
	$ENV{PGDATABASE} = 'postgres';
	system("initdb -D $template -U postgres -A trust -E UTF8 --no-locale --no-sync --wal-segsize=1 >$ENV{WORK}/initdb.log 2>&1") == 0
	  or die "initdb failed\n";
	open(my $conf, '>>', "$template/postgresql.conf") or die "$template: $!\n";
	print $conf "unix_socket_directories = '$ENV{WORK}'\nlisten_addresses = ''\nfsync = off\n",
	  "log_line_prefix = '%m [%p] %q%a '\nshared_preload_libraries = 'lockfence'\nmax_wal_size = 64MB\n";
	close($conf);
	make_databases();
	return;
}

# start_server(SETTING...): a new one; false if it does not start.
sub start_server
{
	my $settings = join(' ', map { "-c $_" } @_);

	stop_server();
	system("rm -rf $data && cp -a $template $data && : >$log") == 0 or die "no place for a server\n";
	return succeeds(60, 'sh', '-c', "pg_ctl -s -w -t 50 -D $data -l $log -o '$settings' start >/dev/null 2>&1");
}

# running(FILE): the postmaster that a postmaster.pid tells of, if it is alive.
sub running
{
	my ($file) = @_;
	open(my $in, '<', $file) or return;
	my $pid = <$in>;
	close($in);
	return $pid && $pid =~ /^(\d+)$/ && kill(0, $1) ? $1 : ();
}

# Its children first: those that are stuck do not notice that it is gone.
sub kill_postmaster
{
	my ($pid) = @_;

	kill('KILL', $pid, split ' ', `ps -o pid= --ppid $pid`);
	select(undef, undef, undef, 0.1) while kill(0, $pid);
	return;
}

# stop_server(MODE): whatever it does; a process that is stuck is killed.
sub stop_server
{
	my ($mode) = @_;
	my ($pid) = running("$data/postmaster.pid") or return;

	return if succeeds(40, 'sh', '-c', "pg_ctl -s -w -t 30 -D $data -m " . ($mode // 'immediate') . ' stop >/dev/null 2>&1');
	kill_postmaster($pid);
	return;
}

1;
