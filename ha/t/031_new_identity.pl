# A server that got a new system identifier, as pg_createsubscriber gives one to a standby that it
# has promoted and stopped: its tables are not loaded until an administrator says that the
# checkpoint is this server's.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# CRC-32C, by which the control file is told to be whole.
my @crc_table = map {
	my $crc = $_;
	$crc = $crc & 1 ? ($crc >> 1) ^ 0x82F63B78 : $crc >> 1 for 1 .. 8;
	$crc
} 0 .. 255;

sub crc32c
{
	my $crc = 0xFFFFFFFF;
	$crc = $crc_table[ ($crc ^ $_) & 0xFF ] ^ ($crc >> 8) for unpack 'C*', shift;
	return $crc ^ 0xFFFFFFFF;
}

# What pg_createsubscriber does last: another identifier in the control file, and new WAL that bears
# it. Gives the old one.
sub new_identity
{
	my ($node) = @_;
	my $file = $node->data_dir . '/global/pg_control';
	open(my $control, '+<:raw', $file) or die;
	read($control, my $content, 8192) == 8192 or die;
	my ($end) = grep { unpack('V', substr($content, $_, 4)) == crc32c(substr($content, 0, $_)) } map { $_ * 4 } 50 .. 150;
	die 'no checksum in the control file' unless defined $end;
	my $old = unpack 'Q<', $content;
	substr($content, 0, 8) = pack 'Q<', $old + 1;
	substr($content, $end, 4) = pack 'V', crc32c(substr($content, 0, $end));
	seek($control, 0, 0) or die;
	print $control $content;
	close $control or die;
	# A server that was lost is to be forced.
	system_or_bail($node->installed_command('pg_resetwal'), '-f', '-D', $node->data_dir);
	return $old;
}

my $primary = new_primary('primary');
$primary->backup('base');
my $server = new_standby('server', $primary, 'base');
my $load = start_load($primary);
# A mark that its rows are those of the promotion.
$server->poll_query_until('postgres', 'SELECT sum(changes) > 20 FROM twin_mot') or die 'nothing is replayed';
promote($server);
stop_load($load);
my $digest = digest($server);
$server->stop('fast');
my $old = new_identity($server);

sub refused
{
	my ($why) = @_;
	$server->start;
	my ($code, undef, $error) = $server->psql('postgres', 'SELECT count(*) FROM twin_mot');
	my $own = $old + 1;
	like( $error,
		qr/could not be loaded.*DETAIL: .*was written by a database cluster with the system identifier $old, and this one has $own.*HINT: .*mot\.adopt_system_identifier/s,
		"not loaded: $why");
	is($server->safe_psql('postgres', 'SELECT count(*) > 0 FROM twin_heap'), 't', 'heap tables are there');
	$server->stop('fast');
	return;
}
refused('nobody says whose the checkpoint is');
$server->append_conf('postgresql.conf', "mot.adopt_system_identifier = '4711'\n");
refused('it is another one than the administrator says');
# The server of a start that was refused is lost: the recovery that follows says what to do, and
# does as the administrator says.
$server->start;
$server->safe_psql('postgres', 'UPDATE twin_heap SET k = k; CHECKPOINT; UPDATE twin_heap SET k = k');
$server->stop('immediate');
my $refused = -s $server->logfile;
is($server->start(fail_ok => 1), 0, 'a recovery does not take over a checkpoint of which nobody says whose it is');
like(slurp_file($server->logfile, $refused), qr/FATAL: .*was written by a database cluster with the system identifier $old.*HINT: [^\n]*mot\.adopt_system_identifier/s,
	'and says what to do');
$server->append_conf('postgresql.conf', "mot.adopt_system_identifier = '$old'\n");
my $log = -s $server->logfile;
$server->start;
is(digest($server), $digest, 'all rows are there');
agrees($server, 'with a new identity');
sound($server, 'with a new identity');
like(slurp_file($server->logfile, $log), qr/mot takes over the checkpoint of the database cluster with the system identifier $old/, 'the log says so');

# From then on it is this cluster's own.
$server->append_conf('postgresql.conf', "mot.adopt_system_identifier = ''\n");
$server->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1');
$digest = digest($server);
crash($server);
is(digest($server), $digest, 'after a loss before the next checkpoint');
$server->restart;
is(digest($server), $digest, 'after a restart');
$server->backup('own');
my $copy = new_standby('copy', $server, 'own');
same_rows($server, $copy, 'from its backup');

# A checkpoint that is not the last one is not taken over: what was logged behind it bears the old
# identifier, too.
$server->stop('immediate');
$server->append_conf('postgresql.conf', "mot.adopt_system_identifier = '" . ($old + 1) . "'\n");
is(new_identity($server), $old + 1, 'a server that was lost got a new identifier');
$server->start;
my ($code, undef, $error) = $server->psql('postgres', 'SELECT count(*) FROM twin_mot');
like($error, qr/was written by a database cluster with the system identifier/, 'not loaded: it was not shut down');

no_crash($primary, $server);
done_testing();
