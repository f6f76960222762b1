# A standby's own processes, stopped and killed while it replays under load and while it writes a
# restartpoint: what waits, what goes on, and that no row is lost, torn or doubled.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $primary = new_primary('primary');
# Enough rows that a restartpoint takes a while at the bandwidth below.
$primary->safe_psql('postgres', q(
CREATE TABLE wide_mot (id int PRIMARY KEY, note text) USING mot;
INSERT INTO wide_mot SELECT i, repeat(md5(i::text), 4) FROM generate_series(1, 40000) i;
));
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base', conf => "mot.replay_hand_over = always\nhot_standby_feedback = on\n");
my $load = start_load($primary);
my $worker = process($standby, 'mot checkpointer');

# Stopped, both of them: replay and readers go on, restartpoints wait and go on with the worker.
my @stopped = ($worker, process($standby, 'mot reclaimer'));
kill 'STOP', @stopped;
my $readers = start_readers($standby);
move_on();
my $restartpoint = restartpoint($standby);
my $before = $standby->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()');
move_on();
stop_readers($readers);
is($standby->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()'), $before, 'no restartpoint completes while the worker is stopped');
ok($restartpoint->pumpable, 'who asked for it waits');
agrees($standby, 'with its workers stopped');
kill 'CONT', @stopped;
$restartpoint->finish;
covered($standby, 'when the worker goes on');
crash($standby);
agrees($standby, 'after a restartpoint that had waited, and a loss');

# Killed: the server begins again from its last restartpoint by itself.
for my $process ('mot checkpointer', 'mot reclaimer')
{
	move_on();
	my $seen = -s $standby->logfile;
	kill 'KILL', process($standby, $process);
	$standby->wait_for_log(qr/terminating any other active server processes.*database system is ready to accept read-only connections/s, $seen);
	$standby->poll_query_until('postgres', 'SELECT true') or die 'is not up again';
	agrees($standby, "after $process was killed");
}

# The startup process, with its threads: PostgreSQL's standby goes down, and starts again.
move_on();
kill 'KILL', process($standby, 'startup');
$standby->wait_for_log(qr/shutting down due to startup process failure.*database system is shut down/s);
$standby->{_pid} = undef;
$standby->start;
agrees($standby, 'after its startup process was killed');

# Lost in the midst of a restartpoint: while it waits for us, at each stage of ours, and right after
# it.
$standby->append_conf('postgresql.conf', "mot.checkpoint_bandwidth = '8MB'\n");
$standby->reload;
my $phases = 0;
for my $round (1 .. pick(4, 40))
{
	$primary->safe_psql('postgres', "UPDATE wide_mot SET note = repeat(md5('$round' || id), 4) WHERE id % 3 = 0; CHECKPOINT");
	wait_replayed($primary, $standby);
	my $holder;
	if ($round % 4 == 1)
	{
		$holder = $standby->background_psql('postgres');
		$holder->query_safe(q(SELECT mot.pause_at('checkpoint-after-redo')));
	}
	$restartpoint = restartpoint($standby);
	# Ours knows its position and has looked at no row; some rows are written; all are (which is soon
	# after some were); it is complete.
	if ($round % 4 == 1) { $standby->safe_psql('postgres', q(SELECT mot.wait_until_paused('checkpoint-after-redo'))) }
	elsif ($round % 4 == 2) { $phases += under_way($standby, q(phase = 'writing rows' AND bytes_written > 0)) }
	elsif ($round % 4 == 3) { under_way($standby, 'bytes_written > 1000000'); usleep(int(rand(400_000))) }
	else { $restartpoint->finish }
	crash($standby);
	eval { $restartpoint->finish };
	eval { $holder->quit } if $holder;
	agrees($standby, "lost in restartpoint $round");
	sound($standby, "lost in restartpoint $round", 'wide_mot');
}
ok($phases > 0, 'rows were being written at a loss');
$standby->append_conf('postgresql.conf', "mot.checkpoint_bandwidth = 0\n");
$standby->reload;
stop_load($load);
same_rows($primary, $standby, 'after all that');
sound($standby, 'after all that', 'wide_mot');
is(wide($standby), wide($primary), 'the wide rows, too');
$primary->safe_psql('postgres', 'CHECKPOINT');
wait_replayed($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
covered($standby, 'at the end');
no_crash($primary);
# Processes were killed by us, none by itself.
unlike(slurp_file($standby->logfile), qr/PANIC|TRAP|panicked|terminated by signal (?!9)/, 'the standby tells of no crash but ours');
done_testing();

# The load has gone on for a while, and the standby has replayed that.
sub move_on
{
	my $lsn = $primary->safe_psql('postgres', 'CHECKPOINT; SELECT pg_current_wal_lsn()');
	my $since = Ledger::written($primary);
	$primary->poll_query_until('postgres', "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint > $since + 100") or die 'no load';
	wait_replayed($primary, $standby);
	return;
}

# Asks for a restartpoint and does not wait for it.
sub restartpoint
{
	my ($node) = @_;
	my $run = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres'), '-c', 'CHECKPOINT' ],
		'<', \undef, '>', \my $out, '2>&1');
	return $run;
}

# Waits until our checkpoint is that far; whether it was seen so.
sub under_way
{
	my ($node, $is_there) = @_;
	return $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM mot.stat_progress_checkpoint WHERE $is_there");
}

sub covered
{
	my ($node, $what) = @_;
	ok($node->poll_query_until('postgres', 'SELECT s.covered_lsn >= c.redo_lsn FROM mot.stat_checkpoint s, pg_control_checkpoint() c'),
		"our checkpoint covers the restartpoint $what");
	return;
}

sub wide
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q(SELECT count(*), md5(string_agg(id || note, '' ORDER BY id)) FROM wide_mot));
}
