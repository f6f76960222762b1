# Standbys that are killed at any moment, that were down while the primary wrote and checkpointed,
# and that are backed up themselves.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = $ENV{MOT_TEST_SEED} // int(rand(1 << 30));
srand($seed);
note("MOT_TEST_SEED=$seed");

my $primary = new_primary('primary', archiving => 1, conf => "wal_keep_size = 0\n");
# Enough rows that a checkpoint of them takes longer than PostgreSQL's own.
$primary->safe_psql('postgres', q(
CREATE TABLE wide_mot (id int PRIMARY KEY, note text) USING mot;
INSERT INTO wide_mot SELECT i, repeat('x', 200) FROM generate_series(1, 100000) i;
));
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1, has_restoring => 1);
$standby->start;

# Killed at random moments, with checkpoints of the primary, and so restartpoints, close together.
my $load = start_load($primary);
for my $round (1 .. pick(4, 40))
{
	for (1 .. int(rand(4)))
	{
		$primary->safe_psql('postgres', "CHECKPOINT; UPDATE wide_mot SET note = 'round $round' WHERE id % 1000 = $round");
		wait_replayed($primary, $standby) if rand() < 0.5;
		# A restartpoint, as far as replay has come.
		$standby->safe_psql('postgres', 'CHECKPOINT');
	}
	usleep(int(rand(300_000)));
	crash($standby);
	agrees($standby, "after kill $round");
}
stop_load($load);
same_rows($primary, $standby, 'after the kills');
sound($standby, 'after the kills', 'wide_mot');

# Down for long: the primary has checkpoints and removes its WAL meanwhile; the archive has it.
$standby->stop(rand() < 0.5 ? 'fast' : 'immediate');
$load = start_load($primary);
for my $round (1 .. 4)
{
	$primary->safe_psql('postgres', "UPDATE wide_mot SET note = 'down $round' WHERE id % 100 = $round; SELECT pg_switch_wal()");
	$primary->safe_psql('postgres', 'CHECKPOINT');
}
stop_load($load);
$standby->start;
same_rows($primary, $standby, 'after it was down for long');
sound($standby, 'after it was down for long', 'wide_mot');

# Backups of the standby itself, right after restartpoints.
for my $round (1 .. pick(3, 12))
{
	$load = start_load($primary);
	$primary->safe_psql('postgres', "UPDATE wide_mot SET note = 'backup $round' WHERE id % 100 = $round");
	$primary->safe_psql('postgres', 'CHECKPOINT');
	wait_replayed($primary, $standby);
	$standby->backup("of_standby_$round");
	stop_load($load);
	my $copy = new_standby("copy_$round", $standby, "of_standby_$round");
	same_rows($standby, $copy, 'from a backup of a standby');
	sound($copy, 'from a backup of a standby', 'wide_mot');
	no_crash($copy);
	$copy->stop('immediate');
}

no_crash($primary);
# The standby's log tells of the kills of the postmaster only.
no_crash($standby);
done_testing();
