# The commit log on a standby's disk is ahead of where the standby may be read. The standby ran
# with hot_standby = off, where PostgreSQL writes the commit log without moving the minimum
# recovery point, and was lost. Started again to be read, with a full arena before it is
# consistent, it must not take a transaction for committed whose commit record is not replayed:
# a prepared one, between the two, keeps the states of rows that it changed. The heap is the
# oracle. The same from a checkpoint that the standby has written there, and where a recovery ends.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\nfull_page_writes = off\nmax_wal_size = 2GB\n");
$primary->safe_psql('postgres', q(
CREATE TABLE marked_heap (id int PRIMARY KEY, note text);
CREATE TABLE marked_mot (id int PRIMARY KEY, note text) USING mot;
CREATE TABLE wide (id int PRIMARY KEY, filler text) USING mot;
INSERT INTO marked_heap SELECT i, 'before' FROM generate_series(1, 50) i;
INSERT INTO marked_mot SELECT i, 'before' FROM generate_series(1, 50) i;
INSERT INTO wide SELECT i, repeat('x', 400) FROM generate_series(1, 10000) i;
));
$primary->backup('base');
# Nothing writes pages there but what the scenario does itself.
my $standby = new_standby('standby', $primary, 'base', conf => "hot_standby = off\nmax_wal_size = 2GB\nbgwriter_lru_maxpages = 0\nshared_buffers = 1MB\nmot.max_memory = '512MB'\n");

sub catch_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()'));
	return;
}

sub minimum_recovery_point
{
	my ($out) = run_command([ $standby->installed_command('pg_controldata'), $standby->data_dir ]);
	return $out =~ /^Minimum recovery ending location: +(\S+)/m ? $1 : die $out;
}

# What the commit log on the disk says of a transaction; 1 is "committed".
sub on_disk
{
	my ($xid) = @_;
	my $file = slurp_file($standby->data_dir . '/pg_xact/0000');
	return ord(substr($file, $xid >> 2, 1)) >> 2 * ($xid & 3) & 3;
}

# Replay begins here each time from now on, before the transaction that is to be prepared: what
# PostgreSQL lists as running there, it asks the commit log about.
$primary->safe_psql('postgres', 'CHECKPOINT');
catch_up();
$standby->stop('fast');
my $begin = redo_of($standby);
$standby->start;

my $prepared = $primary->safe_psql('postgres', q(
BEGIN;
UPDATE marked_heap SET note = 'after';
UPDATE marked_mot SET note = 'after';
SELECT pg_current_xact_id();
PREPARE TRANSACTION 'ahead';
));
# Twice the memory that the standby will have.
$primary->safe_psql('postgres', "UPDATE wide SET filler = repeat('$_', 200)") for 11 .. 40;
catch_up();
# Without a newer checkpoint to restart from, a stop moves the minimum recovery point alone.
$standby->stop('fast');
is(redo_of($standby), $begin, 'replay begins where it did');
my $consistent = minimum_recovery_point();
$standby->start;

$primary->safe_psql('postgres', q(SELECT pg_create_restore_point('before the commit')));
my $before_commit = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
$primary->safe_psql('postgres', q(COMMIT PREPARED 'ahead'));
# More pages of the commit log than the standby keeps in memory: it writes the first one.
use_up_ids($primary, 32768 * $primary->safe_psql('postgres',
		q(SELECT CASE WHEN current_setting('server_version_num')::int < 170000 THEN 6 ELSE 20 END)));
catch_up();
$standby->stop('immediate');
is(on_disk($prepared), 1, 'the commit log on the disk has the prepared transaction as committed');
is(minimum_recovery_point(), $consistent, 'and the standby may be read before that');
is($primary->safe_psql('postgres', "SELECT pg_lsn '$consistent' <= pg_lsn '$before_commit'"), 't', 'indeed');

$standby->append_conf('postgresql.conf', "hot_standby = on\nmot.max_memory = '64MB'\nrecovery_target_name = 'before the commit'\n");

sub read_before_the_commit
{
	my ($what) = @_;
	$standby->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused')) or die 'not paused';
	is($standby->safe_psql('postgres', "SELECT note, count(*) FROM $_ GROUP BY note"), 'before|50', "$_ before the commit record, $what")
	  for qw(marked_heap marked_mot);
	is($standby->safe_psql('postgres', q(SELECT count(*) FROM wide WHERE filler LIKE '4040%')), 10000, "rows that made room, $what");
	sound($standby, "before the commit record, $what", qw(marked_mot wide));
	return;
}

$standby->start;
read_before_the_commit('with a full arena');
# A checkpoint of the tables here, and then a start from it.
$standby->poll_query_until('postgres', q(SELECT covered_lsn >= (SELECT redo_lsn FROM pg_control_checkpoint()) FROM mot.stat_checkpoint)) or die 'no checkpoint';
$standby->stop('immediate');
$standby->start;
read_before_the_commit('from a checkpoint beside it');

$standby->stop('fast');
# A recovery that ends there: PostgreSQL takes the commit log for the truth, and the prepared
# transaction for committed.
$standby->backup_fs_cold('beside');
my $ended = PostgreSQL::Test::Cluster->new('ended');
$ended->init_from_backup($standby, 'beside');
$ended->append_conf('postgresql.conf', "recovery_target_action = promote\n");
$ended->start;
$ended->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'not promoted';
is($ended->safe_psql('postgres', 'SELECT note, count(*) FROM marked_mot GROUP BY note'),
	$ended->safe_psql('postgres', 'SELECT note, count(*) FROM marked_heap GROUP BY note'), 'both tables agree where the recovery ended');
is($ended->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'), 0, 'nothing is prepared there');
sound($ended, 'where the recovery ended', qw(marked_mot wide));
$ended->stop('fast');

$standby->append_conf('postgresql.conf', "recovery_target_name = ''\n");
$standby->start;
catch_up();
is($standby->safe_psql('postgres', "SELECT note, count(*) FROM $_ GROUP BY note"), 'after|50', "$_ behind the commit record") for qw(marked_heap marked_mot);
sound($standby, 'behind the commit record', qw(marked_mot wide));

no_crash($primary, $standby, $ended);
done_testing();
