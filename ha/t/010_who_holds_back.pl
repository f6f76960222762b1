# mot.stat_horizon names who holds row versions back: sessions, prepared transactions, standbys by
# their feedback, with a slot and without.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "max_prepared_transactions = 5\n");
$primary->safe_psql('postgres', q(
CREATE TABLE t (id int PRIMARY KEY, v int) USING mot;
INSERT INTO t SELECT i, i FROM generate_series(1, 100) i;
SELECT pg_create_physical_replication_slot('of_standby');
));
$primary->backup('base');
my $slotted = new_standby('slotted', $primary, 'base', conf => "hot_standby_feedback = on\nwal_receiver_status_interval = 1\nprimary_slot_name = 'of_standby'\n");
my $plain = new_standby('plain', $primary, 'base', conf => "hot_standby_feedback = on\nwal_receiver_status_interval = 1\n");

# Each as long as it lasts, and no longer.
sub held
{
	my ($kind, $name) = @_;
	return "EXISTS (SELECT FROM mot.stat_horizon WHERE kind = '$kind' AND name = '$name' AND keeps = 'all since' AND age >= 0)";
}
$primary->safe_psql('postgres', "BEGIN; UPDATE t SET v = 0 WHERE id = 1; PREPARE TRANSACTION 'left_open'");
is($primary->safe_psql('postgres', 'SELECT ' . held('prepared transaction', 'left_open')), 't', 'a prepared transaction');
$primary->safe_psql('postgres', "ROLLBACK PREPARED 'left_open'");
is($primary->safe_psql('postgres', 'SELECT ' . held('prepared transaction', 'left_open')), 'f', 'it has ended');

my $reader = $primary->background_psql('postgres');
$reader->query_safe("SET application_name = 'long_reader'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
is( $primary->safe_psql('postgres', "SELECT kind, state, keeps FROM mot.stat_horizon WHERE name = 'long_reader'"),
	'session|idle in transaction|what it sees', 'a session with one snapshot');
$reader->query_safe('COMMIT');

my $with_slot = $slotted->background_psql('postgres');
$with_slot->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
ok($primary->poll_query_until('postgres', 'SELECT ' . held('replication slot', 'of_standby')), 'a standby with a slot');
my $without = $plain->background_psql('postgres');
$without->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
ok($primary->poll_query_until('postgres', 'SELECT ' . held('standby', 'plain')), 'a standby without one');

# What they hold back stays, whoever else reads.
$primary->safe_psql('postgres', 'UPDATE t SET v = v + 1; UPDATE t SET v = v + 1');
is($with_slot->query_safe('SELECT sum(v) FROM t'), '5050', 'the standby with a slot sees what it saw');
is($without->query_safe('SELECT sum(v) FROM t'), '5050', 'the one without, too');
$_->query_safe('COMMIT') for $with_slot, $without;
ok($primary->poll_query_until('postgres', q(SELECT versions_stale = 0 FROM mot.stat_tables WHERE relname = 't')), 'and then it goes');
$_->quit for $reader, $with_slot, $without;

# A slot of logical decoding keeps rows of catalogs, and none of ours, as it keeps none of a heap
# table.
$primary->append_conf('postgresql.conf', "wal_level = logical\n");
$primary->restart;
$primary->safe_psql('postgres', "SELECT pg_create_logical_replication_slot('decoded', 'pgoutput')");
is($primary->safe_psql('postgres', "SELECT xmin IS NULL AND catalog_xmin IS NOT NULL FROM pg_replication_slots WHERE slot_name = 'decoded'"),
	't', 'the slot keeps catalogs');
$primary->safe_psql('postgres', 'UPDATE t SET v = v + 1; UPDATE t SET v = v + 1');
ok($primary->poll_query_until('postgres', q(SELECT versions_stale = 0 FROM mot.stat_tables WHERE relname = 't')), 'and not what rows were');
$primary->safe_psql('postgres', "SELECT pg_drop_replication_slot('decoded')");

sound($_) for $primary, $slotted, $plain;
no_crash($primary, $slotted, $plain);
done_testing();
