# An index that was logged, and whose making failed behind that, gives its place in the table back:
# a table with all other places taken gets its next index on a standby beside an older snapshot,
# too, in crash recovery, and at a start that reads the log between the tables' checkpoint and
# PostgreSQL's. So do changes that were prepared and rolled back give back their memory. At a start,
# where the rollback lies before the position from which is replayed; and an index that came and
# went before the checkpoint looked needs no place.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $most = 64;
# Removal of dead catalog rows would hold up replay.
my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
# Without readers, and without a checkpoint of its tables from here on.
my $unread = new_standby('unread', $primary, 'base', conf => "hot_standby = off\nmot.max_memory = '64MB'\n");
$primary->safe_psql('postgres', 'CREATE TABLE h (c text)');

# A table with all places for indexes taken but the last.
sub make_crowded
{
	my ($table) = @_;
	$primary->safe_psql('postgres', qq(
CREATE TABLE $table (id int PRIMARY KEY, x int) USING mot;
INSERT INTO $table SELECT i, i % 10 FROM generate_series(1, 100) i;
DO \$\$ BEGIN FOR i IN 3..$most LOOP CREATE INDEX ON $table (x); END LOOP; END \$\$;
));
	wait_replayed($primary, $standby);
	return;
}

# A session of the standby below whose snapshot its reclaimer settles nothing.
sub reading
{
	my $reader = $standby->background_psql('postgres');
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM twin_mot');
	return $reader;
}

# A session of the primary in which a transaction has logged one more index, and failed behind that.
sub failing
{
	my ($table) = @_;
	my $question = 'SELECT count(*) FROM h WHERE c =';
	my $fails = $primary->background_psql('postgres', on_error_stop => 0);
	$fails->query_safe("BEGIN ISOLATION LEVEL SERIALIZABLE; $question 'a'; INSERT INTO h VALUES ('b'); CREATE INDEX ON $table (x)");
	$primary->safe_psql('postgres', "BEGIN ISOLATION LEVEL SERIALIZABLE; $question 'b'; INSERT INTO h VALUES ('a'); COMMIT");
	$fails->query('COMMIT');
	like($fails->{stderr}, qr/could not serialize access/, 'the transaction fails when it commits, with its definitions logged');
	$fails->{stderr} = '';
	return $fails;
}

sub is_crowded
{
	my ($node, $what, $table) = @_;
	$table //= 'crowded';
	is( $node->safe_psql('postgres', qq(SELECT count(*) FROM pg_index WHERE indrelid = '$table'::regclass)),
		$most, $node->name . ": the last place is taken $what");
	is($node->safe_psql('postgres', "SELECT count(*) FROM $table WHERE x = 3"), 10, $node->name . ": rows by an index $what");
	sound($node, $what, $table);
	return;
}

make_crowded('crowded');
my $reader = reading();
my $fails = failing('crowded');
# Before the reclaimer says in the log that it frees the index.
$fails->query_safe('CREATE INDEX ON crowded (x)');
$fails->quit;

is_crowded($primary, 'where it was freed');
# Far more than the memory of the standby without readers, and a tenth of it at a time.
$primary->safe_psql('postgres', qq(
CREATE TABLE wide (id int PRIMARY KEY, filler text) USING mot;
INSERT INTO wide SELECT i, repeat('x', 400) FROM generate_series(1, 10000) i;
));
for (1 .. 20)
{
	$primary->safe_psql('postgres', qq(BEGIN; UPDATE wide SET filler = repeat('y', 400); PREPARE TRANSACTION 'lost'));
	$primary->safe_psql('postgres', q(ROLLBACK PREPARED 'lost'));
}
my $first = redo_of($unread);
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->wait_for_catchup($unread, 'replay', $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()'));
$unread->stop('fast');
isnt(redo_of($unread), $first, 'the redo position of the standby without readers has passed what was rolled back');
my $log_before = -s $unread->logfile;
$unread->start;
$primary->safe_psql('postgres', 'INSERT INTO wide VALUES (0)');
$primary->wait_for_catchup($unread, 'replay', $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()'));
like(slurp_file($unread->logfile, $log_before), qr/mot replayed [1-9]\d* of \d+ WAL records between its checkpoint/, 'it has read a gap');
promote($unread);
is_crowded($unread, 'where the place was freed in a gap');
is($unread->safe_psql('postgres', q(SELECT count(*), count(filler) FROM wide WHERE filler IS NULL OR filler LIKE 'x%')),
	'10001|10000', 'rows whose change was rolled back in a gap');
sound($unread, 'behind a gap with rollbacks', 'wide');
wait_replayed($primary, $standby);
is_crowded($standby, 'beside an older snapshot');
$reader->query_safe('COMMIT');
$reader->quit;
crash($primary);
is_crowded($primary, 'after a crash');
wait_replayed($primary, $standby);
is_crowded($standby, 'behind that');

# The standby's checkpoint has the index whose making failed, and begins behind that failure.
make_crowded('rolled_back_before');
$reader = reading();
failing('rolled_back_before')->quit;
$primary->safe_psql('postgres', 'CHECKPOINT');
wait_replayed($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
$primary->safe_psql('postgres', 'CREATE INDEX ON rolled_back_before (x)');
wait_replayed($primary, $standby);
$reader->query_safe('COMMIT');
$reader->quit;
$standby->stop('fast');
$standby->start;
is_crowded($standby, 'where a checkpoint has one that was rolled back', 'rolled_back_before');

# Its checkpoint begins before an index that was gone, and its place taken again, when it looked.
make_crowded('gone_before');
$primary->safe_psql('postgres', $_)
  for 'CHECKPOINT', 'CREATE INDEX gone ON gone_before (x)', 'DROP INDEX gone', 'CREATE INDEX ON gone_before (x)';
wait_replayed($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
crash($standby);
is_crowded($standby, 'behind one that was gone', 'gone_before');

no_crash($primary, $standby, $unread);
done_testing();
