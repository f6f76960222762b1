# Standbys that were cloned before their primary had the library: they have no checkpoint of
# memory-optimized tables. Everything comes by replay, and must be there at the next start, although
# PostgreSQL's redo position is behind it by then and no checkpoint of ours has been written since.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', before => 'before', conf => "wal_keep_size = '512MB'\n");
my $small = "wal_keep_size = 0\nmin_wal_size = '32MB'\n";
my $unread = new_standby('unread', $primary, 'before', is_plain => 1, conf => "hot_standby = off\n$small");
my $read = new_standby('read', $primary, 'before', is_plain => 1, conf => $small);

# The primary makes a checkpoint, and ends files of its WAL that a standby may remove; the standbys
# follow.
sub go_on
{
	$primary->safe_psql('postgres', 'CHECKPOINT; SELECT pg_switch_wal()') for 1 .. 3;
	$primary->safe_psql('postgres', 'CHECKPOINT');
	my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
	$primary->wait_for_catchup($_, 'replay', $lsn) for $unread, $read;
	return;
}

my $first = redo_of($unread);
go_on();
for my $standby ($unread, $read)
{
	# It makes its restartpoint when it is shut down.
	$standby->stop('fast');
	isnt(redo_of($standby), $first, $standby->name . ': the redo position has passed the first rows');
	ok(-d $standby->data_dir . '/pg_replslot/mot', $standby->name . ': has a slot');
}
my $log_before = -s $unread->logfile;
$_->start for $unread, $read;

# A new table raises the number from which on tables are unknown; the old ones are changed behind
# it.
$primary->safe_psql('postgres', q(
CREATE TABLE later (id int PRIMARY KEY) USING mot;
INSERT INTO later SELECT generate_series(1, 100);
UPDATE twin_heap SET k = k + 1 WHERE id % 3 = 0;
UPDATE twin_mot SET k = k + 1 WHERE id % 3 = 0;
));
my $digest = digest($primary);
go_on();
like(slurp_file($unread->logfile, $log_before), qr/mot replayed [1-9]\d* of \d+ WAL records between its checkpoint/,
	'the standby that cannot be read has read a gap');
same_rows($primary, $read, 'on the standby that is read');

# Once more, without a shutdown's restartpoint.
crash($unread);
go_on();
for my $standby ($unread, $read)
{
	promote($standby);
	holds_all($standby, $digest, 'promoted');
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM later'), '100', $standby->name . ': the later table');
	sound($standby, 'promoted', 'later');
	crash($standby);
	# With hot_standby = off a server counts as started when its recovery begins.
	$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'does not come up';
	holds_all($standby, $digest, 'promoted and lost');
}

# A recovery in two steps, the first of which stops behind the first rows. It replays what the
# primary has, copied, as from an archive.
my $stepwise = PostgreSQL::Test::Cluster->new('stepwise');
$stepwise->init_from_backup($primary, 'before');
my $wal = $primary->data_dir . '/pg_wal';
$stepwise->append_conf('postgresql.conf', <<"EOT");
shared_preload_libraries = 'mot'
mot.max_memory = '192MB'
max_connections = 40
max_prepared_transactions = 10
hot_standby = off
${small}restore_command = 'cp "$wal/%f" "%p"'
recovery_target_action = shutdown
EOT
append_to_file($stepwise->data_dir . '/recovery.signal', '');
$primary->safe_psql('postgres', q(SELECT pg_create_restore_point('between')));
$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1');
$digest = digest($primary);
$primary->safe_psql('postgres', q(SELECT pg_create_restore_point('behind'); SELECT pg_switch_wal()));
$first = redo_of($stepwise);
$stepwise->append_conf('postgresql.conf', "recovery_target_name = 'between'\n");
# It shuts itself down, perhaps before pg_ctl has seen it run.
append_to_file($stepwise->logfile, '');
system('pg_ctl', '-D', $stepwise->data_dir, '-l', $stepwise->logfile, '-W', 'start');
$stepwise->wait_for_log(qr/database system is shut down/);
wait_stopped($stepwise);
isnt(redo_of($stepwise), $first, 'a recovery in two steps: the redo position has passed the first rows');
$stepwise->append_conf('postgresql.conf', "recovery_target_name = 'behind'\nrecovery_target_action = promote\n");
$stepwise->start;
$stepwise->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'it does not recover';
holds_all($stepwise, $digest, 'after a recovery in two steps');

no_crash($primary, $unread, $read, $stepwise);
done_testing();

sub wait_stopped
{
	my ($node) = @_;
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return unless -e $node->data_dir . '/postmaster.pid';
		select(undef, undef, undef, 0.1);
	}
	die $node->name . ' does not stop';
}
