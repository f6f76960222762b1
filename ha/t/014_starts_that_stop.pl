# Starts that cannot have all they need: they stop, or refuse the tables, and say what is missing.
# Nothing is taken for empty that is not known to be, and nobody waits for ever.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', archiving => 1, conf => "wal_keep_size = 0\n");

# A shutdown's checkpoint says that nothing was logged after it. A standby that begins with it
# replays more, writes no checkpoint of its own since it cannot be read, and may not keep its WAL:
# what the checkpoint says is true no more.
$primary->stop('fast');
$primary->backup_fs_cold('cold');
$primary->start;
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'cold', has_streaming => 1);
$standby->append_conf('postgresql.conf', "archive_mode = off\nhot_standby = off\nmax_slot_wal_keep_size = '1MB'\nmin_wal_size = '32MB'\n");
system_or_bail('pg_ctl', '-D', $standby->data_dir, '-l', $standby->logfile, '-W', 'start');
for my $round (1 .. 4)
{
	$primary->safe_psql('postgres', qq(
INSERT INTO twin_heap SELECT i, i, $round, 'unseen' FROM generate_series(${round}0000, ${round}0500) i;
INSERT INTO twin_mot SELECT * FROM twin_heap WHERE note = 'unseen' AND changes = $round;
CHECKPOINT; SELECT pg_switch_wal()));
	my $lsn = $primary->safe_psql('postgres', 'CHECKPOINT; SELECT pg_current_wal_lsn()');
	$primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn >= '$lsn'::pg_lsn")
	  or die 'the standby does not follow';
}
system_or_bail('pg_ctl', '-D', $standby->data_dir, '-m', 'fast', 'stop');
$standby->append_conf('postgresql.conf', "hot_standby = on\n");
is($standby->start(fail_ok => 1), 0, 'a standby that lacks WAL behind a final checkpoint does not start');
ok($standby->log_contains('the WAL from [0-9A-F/]+ to [0-9A-F/]+ is needed and cannot be read'), 'and says which');
# With what is missing it does.
wait_archived($primary);
system_or_bail('sh', '-c', 'cp ' . $primary->archive_dir . '/0000* ' . $standby->data_dir . '/pg_wal/');
$standby->start;
same_rows($primary, $standby, 'with its WAL back from an archive');
$standby->stop('fast');

# The last checkpoint fails, so the next start reads the WAL behind the one before; a record of ours
# in it cannot be applied. The worker that loads says so, and who asks for the tables is told rather
# than kept waiting; so is a standby's startup process that waits for the worker.
my $failing = new_primary('failing');
$failing->safe_psql('postgres', 'CHECKPOINT');
chmod 0500, $failing->data_dir . '/mot' or die;
$failing->safe_psql('postgres', "INSERT INTO twin_mot VALUES (70000$_, 1, 0, 'a row to find')") for 1 .. 5;
$failing->stop('fast');
chmod 0700, $failing->data_dir . '/mot' or die;
$failing->backup_fs_cold('good');
damage($failing->data_dir . '/pg_wal', 'a row to find');
$failing->backup_fs_cold('damaged');
$failing->start;
my ($code, undef, $error) = $failing->psql('postgres', q(SET statement_timeout = '60s'; SELECT count(*) FROM twin_mot));
like($error, qr/could not replay the record that ends at/, 'after a clean start: the record is named');
is($failing->safe_psql('postgres', 'SELECT count(*) FROM twin_heap'), '1000', 'and the rest of the server works');
$failing->stop('fast');
my $waiting = PostgreSQL::Test::Cluster->new('waiting');
$waiting->init_from_backup($failing, 'damaged', has_streaming => 1);
$waiting->start;
($code, undef, $error) = $waiting->psql('postgres', q(SET statement_timeout = '60s'; SELECT count(*) FROM twin_mot));
like($error, qr/could not replay the record that ends at/, 'on a standby without a record to replay, too');
$waiting->stop('fast');
my $whole = PostgreSQL::Test::Cluster->new('whole');
$whole->init_from_backup($failing, 'good');
$whole->start;
is($whole->safe_psql('postgres', q(SELECT count(*) FROM twin_mot WHERE note = 'a row to find')), '5', 'with the WAL as it was all is there');
sound($whole, 'with the WAL as it was');

# A recovery without the checkpoint worker, and without a slot: PostgreSQL's checkpoints would
# remove WAL that nobody else has. It waits for the worker, says so, and can be stopped; nothing is
# lost.
my $alone = new_primary('alone', conf => "max_replication_slots = 0\nwal_keep_size = 0\n");
$alone->safe_psql('postgres', q(CHECKPOINT; UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1));
my $digest = digest($alone);
$alone->kill9;
wait_gone($alone);
$alone->append_conf('postgresql.conf', "max_worker_processes = 0\n");
system('pg_ctl', '-D', $alone->data_dir, '-l', $alone->logfile, '-W', 'start');
$alone->wait_for_log(qr/the checkpoint worker of mot did not start in time.*Recovery waits for it/s);
isnt(system('pg_isready', '-q', '-h', $alone->host, '-p', $alone->port), 0, 'without worker and slot: nobody is let in');
system_or_bail('pg_ctl', '-D', $alone->data_dir, '-m', 'fast', 'stop');
$alone->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$alone->start;
is(digest($alone), $digest, 'with the worker everything is there');
sound($alone, 'with the worker');

# A link in place of the checkpoints' directory: base backups pass over it.
my ($place, $elsewhere) = ($whole->data_dir . '/mot', $whole->basedir . '/mot-elsewhere');
$whole->stop('fast');
rename $place, $elsewhere or die;
symlink $elsewhere, $place or die;
my $seen = -s $whole->logfile;
is($whole->start(fail_ok => 1), 0, 'with a link in place of the directory it does not start');
like(slurp_file($whole->logfile, $seen), qr/FATAL: .*"mot" in the data directory is a symbolic link.*HINT: .*Move the directory back/s, 'and says why');
unlink $place or die;
rename $elsewhere, $place or die;
$whole->start;
is($whole->safe_psql('postgres', q(SELECT count(*) FROM twin_mot WHERE note = 'a row to find')), '5', 'with the directory in its place all is there');
# Nor is a checkpoint written through one that is made while the server runs.
rename $place, $elsewhere or die;
symlink $elsewhere, $place or die;
$seen = -s $whole->logfile;
$whole->safe_psql('postgres', 'UPDATE twin_mot SET k = k + 1; CHECKPOINT');
like(slurp_file($whole->logfile, $seen), qr/mot checkpoint at redo \S+ failed: .*symbolic link/, 'no checkpoint is written through a link');
unlink $place or die;
rename $elsewhere, $place or die;
$whole->safe_psql('postgres', 'CHECKPOINT');

no_crash($primary, $standby, $failing, $waiting, $whole, $alone);
done_testing();

# Makes the first record of ours with `$text` one of a kind that nobody knows, with the right
# checksum.
sub damage
{
	my ($directory, $text) = @_;
	for my $name (grep { /^[0-9A-F]{24}$/ } slurp_dir($directory))
	{
		my $wal = do { local $/; open(my $in, '<:raw', "$directory/$name") or die; <$in> };
		for (my $found = index($wal, $text); $found >= 0; $found = index($wal, $text, $found + 1))
		{
			# Records begin at multiples of eight; this one is short, and looked for within its page.
			for (my $at = $found - $found % 8; $at > $found - 512 && $at >= $found - $found % 8192; $at -= 8)
			{
				my ($bytes, undef, undef, undef, $manager, undef, $sum) = unpack('L< L< Q< C C S< L<', substr($wal, $at, 24));
				next unless $manager == 128 && $bytes > 26 && $at + $bytes > $found && $at % 8192 + $bytes <= 8192;
				my $record = substr($wal, $at, $bytes);
				next unless checksum($record) == $sum;
				# Behind the record's header, and the short header of its data.
				substr($record, 26, 1) = "\xff";
				substr($record, 20, 4) = pack('L<', checksum($record));
				substr($wal, $at, $bytes) = $record;
				open(my $out, '+<:raw', "$directory/$name") or die;
				print $out $wal;
				close($out) or die;
				return;
			}
		}
	}
	die 'no record found';
}

# As PostgreSQL's: what follows the header, then the header up to the checksum.
sub checksum
{
	my ($record) = @_;
	my $sum = 0xFFFFFFFF;
	for my $byte (unpack('C*', substr($record, 24) . substr($record, 0, 20)))
	{
		$sum ^= $byte;
		$sum = $sum & 1 ? ($sum >> 1) ^ 0x82F63B78 : $sum >> 1 for 1 .. 8;
	}
	return $sum ^ 0xFFFFFFFF;
}
