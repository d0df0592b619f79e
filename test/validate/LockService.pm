# LockService: a lock service's validate endpoint that answers, or misbehaves, as it is told.
#
#   my $service = LockService->new(dir => $dir, tls => { SSL_cert_file => ..., ... });
#   $service->mode('silent');			# from the next connection or request on
#   $service->url;						# of the endpoint
#   $service->count('connect');			# how often that happened; 'request', 'handshake', ...
#
# It listens on a free port of loopback, has a process for each connection, and ends with the process that
# made it, however that ends.  What happened stands in a log, one object of JSON a line.
package LockService;

use strict;
use warnings;

use IO::Compress::Gzip qw(gzip);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::SSL;
use JSON::PP;
use POSIX ();
use Socket qw(IPPROTO_TCP SOL_SOCKET SO_LINGER TCP_NODELAY);
use Time::HiRes qw(sleep time);

my $HUGE = 2 * 1024 ** 3;
my $JSON = JSON::PP->new->utf8->canonical->allow_nonref;

# ---- what is answered ----------------------------------------------------------------------------

# The right answer, with some fields otherwise: a value is JSON text, and undef leaves the field out.
sub answer
{
	my ($asked, %other) = @_;
	my %field = (
		resource => $JSON->encode($asked->{resource}), token => qq("$asked->{token}"), valid => 'true',
		epoch => $asked->{epoch}, expires_in_ms => 12345, %other);

	return '{' . join(',', map { qq("$_":$field{$_}) } grep { defined $field{$_} } sort keys %field) . '}';
}

# mode => what to answer to a question: a body; or a status, a body and more header lines.
my %ANSWER = (
	valid => sub { answer(shift) },
	refused => sub { answer(shift, valid => 'false', expires_in_ms => 0) },

	# bodies that say something else
	wrong_token => sub { my $q = shift; answer($q, token => '"' . ($q->{token} + 1) . '"') },
	wrong_resource => sub { my $q = shift; answer($q, resource => $JSON->encode($q->{resource} . 'x')) },
	number_token => sub { my $q = shift; answer($q, token => $q->{token}) },
	rounded_token => sub { my $q = shift; answer($q, token => $q->{token} - 1) },
	float_token => sub { my $q = shift; answer($q, token => "$q->{token}.0") },
	padded_token => sub { my $q = shift; answer($q, token => qq("0$q->{token}")) },
	long_token => sub { my $q = shift; answer($q, token => qq("1$q->{token}$q->{token}")) },
	no_token => sub { answer(shift, token => undef) },
	no_resource => sub { answer(shift, resource => undef) },
	array_resource => sub { my $q = shift; answer($q, resource => '[' . $JSON->encode($q->{resource}) . ']') },
	valid_text => sub { answer(shift, valid => '"true"') },
	valid_number => sub { answer(shift, valid => 1) },
	valid_null => sub { answer(shift, valid => 'null') },
	no_valid => sub { answer(shift, valid => undef) },
	valid_twice => sub { my $body = answer(shift, valid => 'false'); $body =~ s/\}$/,"valid":true}/r },
	huge_expires => sub { answer(shift, expires_in_ms => '9223372036854775807') },
	vast_expires => sub { answer(shift, expires_in_ms => '1' . '0' x 40) },
	float_expires => sub { answer(shift, expires_in_ms => '1e300') },
	negative_expires => sub { answer(shift, expires_in_ms => -5) },
	text_expires => sub { answer(shift, expires_in_ms => '"soon"') },
	no_expires => sub { answer(shift, expires_in_ms => undef) },
	wrong_epoch => sub { my $q = shift; answer($q, epoch => $q->{epoch} + 1) },
	no_epoch => sub { answer(shift, epoch => undef) },
	array => sub { '[' . answer(shift) . ']' },
	garbage => sub { answer(shift) . 'x' },
	nested => sub { '[' x 15000 },
	nul => sub { answer(shift, valid => "true,\"a\":\"\0\"") },
	not_utf8 => sub { answer(shift, note => qq("\xff\xfe")) },
	html => sub { (200, '<html><body>Welcome to nginx!</body></html>', 'Content-Type: text/html') },
	empty => sub { '' },
	cut_json => sub { substr(answer(shift), 0, -10) },

	# other statuses, each with a body that would do
	(map { my $status = $_; $status => sub { ($status, answer(shift)) } } 201, 203, 206, 400, 401, 403, 404, 429, 500, 502, 503),
	204 => sub { (204, '') },
	304 => sub { (304, '') },
	login => sub { (401, answer(shift), 'WWW-Authenticate: Basic realm="locks"', 'WWW-Authenticate: Negotiate') },
	redirect => sub { my ($q, $where) = @_; (302, answer($q), "Location: $where") },
	redirect_post => sub { my ($q, $where) = @_; (307, answer($q), "Location: $where") },

	# headers
	cookie => sub { (200, answer(shift), 'Set-Cookie: session=stolen; Path=/') },
	gzip => sub { my $body = answer(shift); gzip(\$body => \my $less); (200, $less, 'Content-Encoding: gzip') },
	close => sub { (200, answer(shift), 'Connection: close') },
);

# ---- how: a mode that needs the connection itself ------------------------------------------------

sub head
{
	my ($status, $length, @lines) = @_;

	push @lines, 'Content-Type: application/json' unless grep { /^Content-Type/ } @lines;
	return join("\r\n", "HTTP/1.1 $status Whatever", @lines, (defined $length ? "Content-Length: $length" : ()), '', '');
}

sub put
{
	my ($to, $bytes) = @_;

	while (length $bytes)
	{
		my $n = syswrite($to, $bytes);
		return 0 unless $n;
		substr($bytes, 0, $n) = '';
	}
	return 1;
}

# Until the peer has gone; nothing that it sends is answered.
sub wait_for_end
{
	my ($to) = @_;

	1 while sysread($to, my $ignored, 65536);
	return;
}

sub drip
{
	my ($to, $text, $seconds) = @_;

	foreach my $byte (split(//, $text))
	{
		put($to, $byte) or return;
		sleep $seconds;
	}
	return;
}

# As much as the peer takes of a body without end; returns how much that was.
sub pour
{
	my ($to, $bytes, $limit) = @_;
	my $sent = 0;

	while ($sent < $limit && put($to, $bytes))
	{
		$sent += length $bytes;
	}
	return $sent;
}

sub reset_connection
{
	my ($to) = @_;

	setsockopt($to, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0));
	POSIX::close(fileno($to));
	return;
}

# mode => what to do with the connection once it asked; true: it may ask again.
my %ACTION = (
	silent => sub { wait_for_end($_[0]) },
	drip => sub { my ($to, $q) = @_; my $body = answer($q); drip($to, head(200, length $body) . $body, 0.2) },
	drip_headers => sub { my ($to) = @_; drip($to, head(200, 10) =~ s/\r\n$//r . 'X-More: ' . 'x' x 600, 0.1) },
	half => sub { my ($to, $q) = @_; my $body = answer($q); put($to, head(200, length $body) . substr($body, 0, 20)); wait_for_end($to) },
	truncated => sub { my ($to, $q) = @_; my $body = answer($q); put($to, head(200, 10 + length $body) . $body); 0 },
	close_unsaid => sub { my ($to, $q) = @_; my $body = answer($q); put($to, head(200, length $body) . $body); 0 },
	close_unanswered => sub { 0 },
	reset => sub { reset_connection($_[0]) },
	huge => sub { my ($to, $q, $log) = @_; put($to, head(200, $HUGE)); $log->(sent => bytes => pour($to, ' ' x 65536, $HUGE)); 0 },
	endless => sub { my ($to, $q, $log) = @_; put($to, head(200)); $log->(sent => bytes => pour($to, ' ' x 65536, $HUGE)); 0 },
	endless_headers => sub {
		my ($to, $q, $log) = @_;
		put($to, "HTTP/1.1 200 OK\r\n");
		$log->(sent => bytes => pour($to, 'X-More: ' . 'x' x 1000 . "\r\n", 256 * 1024 ** 2));
		0;
	},
	chunked => sub {
		my ($to, $q) = @_;
		put($to, head(200, undef, 'Transfer-Encoding: chunked')
			. join('', map { "1\r\n$_\r\n" } split(//, answer($q))) . "0\r\n\r\n");
	},
	http09 => sub { my ($to, $q) = @_; put($to, answer($q)); 0 },
	noise => sub { my ($to) = @_; put($to, join('', map { chr(int(rand(256))) } 1 .. 4096)); 0 },
	continued => sub { my ($to, $q) = @_; my $body = answer($q); put($to, "HTTP/1.1 100 Continue\r\n\r\n" . head(200, length $body) . $body) },
);

# Besides those: slow, the right answer after so many milliseconds; jitter, after up to so many; any, one of
# these modes; issued, a yes for these tokens and a no for others.
sub resolve_mode
{
	my ($question, $mode, $argument) = @_;

	return (split(/ /, $argument))[rand(split(/ /, $argument))] if $mode eq 'any';
	return (grep { $_ eq $question->{token} } split(/ /, $argument)) ? 'valid' : 'refused' if $mode eq 'issued';
	return $mode unless $mode eq 'slow' || $mode eq 'jitter';
	sleep $argument / 1000 * ($mode eq 'jitter' ? rand : 1);
	return 'valid';
}

sub act
{
	my ($to, $question, $mode, $argument, $log) = @_;

	$mode = resolve_mode($question, $mode, $argument);
	return $ACTION{$mode}->($to, $question, $log) if $ACTION{$mode};
	my @answer = ($ANSWER{$mode} or die "no such mode: $mode")->($question, $argument);
	my ($status, $body, @lines) = @answer == 1 ? (200, @answer) : @answer;
	put($to, head($status, $status == 204 || $status == 304 ? undef : length $body, @lines) . $body) or return 0;
	return !grep { $_ eq 'Connection: close' } @lines;
}

# ---- a connection --------------------------------------------------------------------------------

sub decode_percent { return $_[0] =~ s/\+/ /gr =~ s/%([0-9A-Fa-f]{2})/chr(hex($1))/ger }

# What was asked, from the body or from the query, as a hash; dies if that cannot be told.
sub question
{
	my ($target, $body) = @_;
	my %q;

	if (length $body)
	{
		%q = %{ $JSON->decode($body) };
	}
	else
	{
		%q = map { my ($name, $value) = split(/=/, $_, 2); $name => decode_percent($value) }
		  split(/&/, $target =~ s/^[^?]*\?//r);
		utf8::decode($q{resource});
	}
	$q{epoch} = $q{token} >> 48;
	return \%q;
}

# Reads a request: method, target, headers and body; nothing at the connection's end.
sub read_request
{
	my ($from) = @_;
	my $buffer = '';

	while ($buffer !~ /\r\n\r\n/)
	{
		sysread($from, $buffer, 65536, length $buffer) or return;
	}
	my ($head, $body) = split(/\r\n\r\n/, $buffer, 2);
	my ($first, @lines) = split(/\r\n/, $head);
	my %header = map { /^([^:]+):\s*(.*)$/ ? (lc $1 => $2) : () } @lines;
	while (length $body < ($header{'content-length'} // 0))
	{
		sysread($from, $body, 65536, length $body) or return;
	}
	my ($method, $target) = split(/ /, $first);
	return { method => $method, target => $target, headers => \%header, body => $body };
}

sub serve_connection
{
	my ($self, $socket) = @_;
	my ($mode) = $self->current_mode;
	my $log = sub { $self->note(@_) };


	setsockopt($socket, IPPROTO_TCP, TCP_NODELAY, 1);
	return reset_connection($socket) if $mode eq 'refuse';
	return wait_for_end($socket) if $mode eq 'stall';
	if ($self->{tls})
	{
		IO::Socket::SSL->start_SSL($socket, SSL_server => 1, SSL_reuse_ctx => $self->{tls_context})
		  or return $log->(handshake => error => "$IO::Socket::SSL::SSL_ERROR");
		$log->(handshake => version => $socket->get_sslversion);
	}
	while (my $request = read_request($socket))
	{
		my ($now, $argument) = $self->current_mode;
		$log->(request => %$request, mode => $now);
		act($socket, question($request->{target}, $request->{body}), $now, $argument, $log) or last;
	}
	$log->('end');
	return;
}

# ---- the server ----------------------------------------------------------------------------------

# new(dir => an empty or missing directory, tls => options of IO::Socket::SSL for a server)
sub new
{
	my ($class, %params) = @_;
	my $self = bless { %params, mode_file => "$params{dir}/mode", log_file => "$params{dir}/log" }, $class;

	mkdir $self->{dir};
	$self->{tls_context} = IO::Socket::SSL::SSL_Context->new(SSL_server => 1, %{ $self->{tls} }) || die $IO::Socket::SSL::SSL_ERROR
	  if $self->{tls};
	$self->{listen} = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1000) or die "cannot listen: $!";
	$self->{port} = $self->{listen}->sockport;
	$self->mode('valid');
	$self->forget;
	pipe(my $lifeline, $self->{lifeline}) or die "pipe: $!";
	$self->{owner} = $$;
	$self->{pid} = fork // die "fork: $!";
	if (!$self->{pid})
	{
		close $self->{lifeline};
		eval { $self->accept_connections($lifeline) };
		kill('KILL', -$$);
		POSIX::_exit(1);
	}
	close $self->{listen};
	return $self;
}

# Until the process that made it has closed its end of the pipe, or is no more.
sub accept_connections
{
	my ($self, $lifeline) = @_;

	setpgrp;
	open(STDIN, '<', '/dev/null');
	open(STDOUT, '>>', "$self->{dir}/out");
	open(STDERR, '>&', \*STDOUT);
	$SIG{CHLD} = 'IGNORE';
	$SIG{PIPE} = 'IGNORE';
	my $both = IO::Select->new($self->{listen}, $lifeline);
	while (!grep { $_ == $lifeline } (my @ready = $both->can_read))
	{
		my $socket = $self->{listen}->accept or next;
		$self->note('connect');
		if (!fork)
		{
			close $self->{listen};
			srand;
			eval { $self->serve_connection($socket); 1 } or $self->note(trouble => text => "$@");
			POSIX::_exit(0);
		}
	}
	return;
}

sub stop
{
	my ($self) = @_;

	return unless $self->{owner} == $$ && delete $self->{lifeline};
	kill('KILL', -$self->{pid}, $self->{pid});	# a server made later holds the lifeline open as well
	waitpid($self->{pid}, 0);
	return;
}

sub DESTROY
{
	my ($self) = @_;

	local ($?, $!);
	$self->stop;
	return;
}

# ---- telling it, and asking it -------------------------------------------------------------------

sub mode
{
	my ($self, $mode, $argument) = @_;

	open(my $file, '>', "$self->{mode_file}.new") or die "mode: $!";
	print $file join("\n", $mode, $argument // ());
	close $file;
	rename("$self->{mode_file}.new", $self->{mode_file}) or die "mode: $!";
	return;
}

sub current_mode
{
	my ($self) = @_;

	open(my $file, '<', $self->{mode_file}) or die "mode: $!";
	chomp(my @lines = <$file>);
	return @lines;
}

sub url
{
	my ($self, $host) = @_;

	return ($self->{tls} ? 'https' : 'http') . '://' . ($host // '127.0.0.1') . ":$self->{port}/v1/validate";
}

sub note
{
	my ($self, $what, %facts) = @_;

	open(my $log, '>>', $self->{log_file}) or die "log: $!";
	syswrite($log, $JSON->encode({ what => $what, time => time, %facts }) . "\n");
	return;
}

# What happened of one kind, since the log was forgotten.
sub events
{
	my ($self, $what) = @_;

	open(my $log, '<', $self->{log_file}) or die "log: $!";
	return grep { $_->{what} eq $what } map { $JSON->decode($_) } grep { /\n\z/ } <$log>;
}

sub count { my ($self, $what) = @_; return scalar($self->events($what)) }

sub forget
{
	my ($self) = @_;

	open(my $log, '>', $self->{log_file}) or die "log: $!";
	return;
}

# Waits until something has happened so many times.
sub wait_for
{
	my ($self, $what, $times) = @_;
	my $deadline = time + 120;

	while ($self->count($what) < ($times // 1))
	{
		die "the service does not see: $what" if time > $deadline;
		sleep 0.02;
	}
	return;
}

1;
