# Connections with replication=database that run SQL: a fast shutdown ends them only after the
# workers, of which one waits for whoever may still log rows. It ends those that have an open
# transaction, lets in no more, waits for nobody else, and streams on to standbys.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "max_wal_senders = 20\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
my $id = 5000;

sub stops
{
	my ($node, $what) = @_;
	my $is_stopped = $node->stop('fast', fail_ok => 1);
	ok($is_stopped, $node->name . ": a fast shutdown ends $what");
	$node->stop('immediate') unless $is_stopped;
	return;
}

sub session
{
	my ($node) = @_;
	return $node->background_psql('postgres', replication => 'database', on_error_stop => 0);
}

# A statement on a pair of new rows.
sub insert
{
	my ($session, $note) = @_;
	$id++;
	$session->query_safe("INSERT INTO $_ VALUES ($id, 1, 0, '$note')") for qw(twin_heap twin_mot);
	return;
}

# Who has read, is idle; who has written, too; who has read in an open transaction, and who has
# written in one; who has prepared one.
sub open_sessions
{
	my ($node) = @_;
	my %open = map { $_ => session($node) } qw(read wrote reads writes prepared);
	$open{read}->query_safe('SELECT count(*) FROM twin_mot');
	insert($open{wrote}, 'committed');
	$open{reads}->query_safe('BEGIN');
	$open{reads}->query_safe('SELECT count(*) FROM twin_mot');
	$open{writes}->query_safe('BEGIN');
	insert($open{writes}, 'lost');
	my $name = "prepared $id";
	$open{prepared}->query_safe('BEGIN');
	insert($open{prepared}, 'prepared');
	$open{prepared}->query_safe("PREPARE TRANSACTION '$name'");
	return ($name, values %open);
}

# The standby, beside sessions that have read.
my @readers = map { session($standby) } 1 .. 2;
$readers[1]->query_safe('BEGIN');
$_->query_safe('SELECT count(*) FROM twin_mot') for @readers;
stops($standby, 'a standby beside sessions that have read');
$_->quit for @readers;
$standby->start;

# The primary: loading at the next start, then with the memory of before.
for my $warm (qw(off on))
{
	$primary->append_conf('postgresql.conf', "mot.warm_restart = $warm\n");
	$primary->restart;
	my $seen = -s $primary->logfile;
	my ($name, @sessions) = open_sessions($primary);
	wait_replayed($primary, $standby);
	my $digest = digest($primary);
	stops($primary, "sessions of all kinds, warm_restart = $warm");
	$_->quit for @sessions;
	my ($last) = slurp_command('pg_controldata', $primary->data_dir) =~ /^Latest checkpoint location:\s+(\S+)/m;
	ok($standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() > '$last'::pg_lsn"), 'a standby has been sent the last checkpoint');
	$primary->start;
	is(digest($primary), $digest, "all rows after a shutdown beside sessions, warm_restart = $warm");
	# mot.check would wait for it.
	$primary->safe_psql('postgres', "COMMIT PREPARED '$name'");
	sound($primary, "after a shutdown beside sessions, warm_restart = $warm");
	same_rows($primary, $standby, "after a shutdown beside sessions, warm_restart = $warm");
	unlike(slurp_file($primary->logfile, $seen), qr/mot keeps no memory|mot cannot restart warm/, 'the memory is kept') if $warm eq 'on';
}

# Sessions that write all the time.
for my $round (1 .. pick(3, 12))
{
	my $output = '';
	my $load = IPC::Run::start(
		[
			$primary->installed_command('pgbench'), '-n', '-c', 4, '-T', 3600, (map { ('-f', "$ENV{TESTDIR}/load/$_.sql") } qw(transfer twins remove savepoint)),
			$primary->connstr('postgres') . q( replication=database application_name='senders')
		],
		'<', \undef, '>', \$output, '2>&1');
	my $before = $primary->safe_psql('postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())');
	my $is_working = $primary->poll_query_until('postgres', "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint > $before + 100");
	ok($is_working, 'they write') or diag($output);
	stops($primary, "beside sessions that write, $round");
	$load->finish;
	$primary->start;
	agrees($primary, "after a shutdown beside sessions that write, $round");
	sound($primary, "after a shutdown beside sessions that write, $round");
}
same_rows($primary, $standby, 'at the end');
no_crash($primary, $standby);

sub slurp_command
{
	my (@command) = @_;
	IPC::Run::run([@command], '>', \my $output) or die "@command";
	return $output;
}

done_testing();
