# Indexes on expressions and partial ones across recoveries. Replay and loading compute nothing:
# they find the keys behind the rows. After each, index and rows agree, on the primary, on a standby
# and on a server made of a base backup.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

# The function is gone from the search path of whoever recovers, and says when it is called.
$primary->safe_psql('postgres', "CREATE SCHEMA f; CREATE FUNCTION f.key(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN upper(t) || length(t); END'");

# The rows by the indexes and without them, and what mot.check says.
sub looks_right
{
	my ($node, $table, $expected, $what) = @_;
	my $where = "f.key(b) = 'AB2'";
	my $partial = "c = 7 AND a > 2";
	my $rows = "SELECT string_agg(a::text, ',' ORDER BY a) FROM $table WHERE";
	my $by_index = "SET enable_seqscan = off; SET enable_bitmapscan = off";
	is($node->safe_psql('postgres', "$by_index; $rows $where"), $expected, "$what: by the expression");
	like($node->safe_psql('postgres', "$by_index; EXPLAIN (COSTS OFF) $rows $where"), qr/Index Scan using ${table}_key/, "$what: it is used");
	my $some = join(',', grep { $_ > 2 } split(/,/, $expected));
	is($node->safe_psql('postgres', "$by_index; $rows $partial"), $some, "$what: by the partial index");
	is($node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; $rows $where"), $expected, "$what: by the rows");
	$node->safe_psql('postgres', "SELECT * FROM mot.check('$table')") if $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 'f';
	return;
}

# Another table for each way. Rows 1 to 4 are older than the indexes, row 5 is younger. Row 9 has
# another key.
my $number = 0;
sub make_table
{
	my ($between) = @_;
	$number++;
	my $table = "made$number";
	$primary->safe_psql('postgres', "CREATE TABLE $table (a int PRIMARY KEY, b text, c int DEFAULT 7) USING mot;
		INSERT INTO $table SELECT g, 'ab' FROM generate_series(1, 4) g; INSERT INTO $table VALUES (9, 'other', 8)");
	$primary->safe_psql('postgres', 'CHECKPOINT') if $between =~ /rows/;
	$primary->safe_psql('postgres', "CREATE INDEX ${table}_key ON $table (f.key(b)); CREATE INDEX ON $table (c) WHERE a > 2; INSERT INTO $table VALUES (5, 'Ab')");
	$primary->safe_psql('postgres', 'CHECKPOINT') if $between =~ /index/;
	return $table;
}

my %tables;
for my $between ('nothing', 'rows', 'index', 'rows and index')
{
	my $table = make_table($between);
	$tables{$table} = $between;
	looks_right($primary, $table, '1,2,3,4,5', "$between, before a crash");
}
crash($primary);
looks_right($primary, $_, '1,2,3,4,5', "$tables{$_}, after a crash") for sort keys %tables;
for my $table (sort keys %tables)
{
	$primary->safe_psql('postgres', "UPDATE $table SET b = 'x', c = 0 WHERE a = 2; DELETE FROM $table WHERE a = 3; UPDATE $table SET b = 'aB', c = 7 WHERE a = 9");
}
crash($primary);
looks_right($primary, $_, '1,4,5,9', "$tables{$_}, changes replayed") for sort keys %tables;
wait_replayed($primary, $standby);
looks_right($standby, $_, '1,4,5,9', "$tables{$_}, on the standby") for sort keys %tables;

# A clean restart loads the checkpoint, a warm one keeps the arena. A server made of a backup loads.
$primary->restart;
looks_right($primary, $_, '1,4,5,9', "$tables{$_}, after a clean restart") for sort keys %tables;
$primary->append_conf('postgresql.conf', "mot.warm_restart = on\n");
$primary->restart;
$primary->restart;
looks_right($primary, $_, '1,4,5,9', "$tables{$_}, after a warm restart") for sort keys %tables;
$primary->backup('later');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($primary, 'later');
$copy->start;
looks_right($copy, $_, '1,4,5,9', "$tables{$_}, in a copy") for sort keys %tables;
$copy->stop;

# The transaction that makes the index is torn by a crash, rolled back, and prepared.
my $torn = 'made1';
my $session = $primary->background_psql('postgres');
$session->query_safe("BEGIN; DROP INDEX ${torn}_key; CREATE INDEX ${torn}_key ON $torn (f.key(b || b)); SELECT pg_switch_wal()");
crash($primary);
eval { $session->quit };
looks_right($primary, $torn, '1,4,5,9', 'torn');
my $work = "BEGIN; DROP INDEX ${torn}_key; UPDATE $torn SET b = 'ab' WHERE a = 2; CREATE INDEX ${torn}_key ON $torn (f.key(b)); DELETE FROM $torn WHERE a = 9;
	UPDATE $torn SET c = 7 WHERE a = 2; INSERT INTO $torn VALUES (6, 'AB')";
$primary->safe_psql('postgres', "$work; ROLLBACK");
looks_right($primary, $torn, '1,4,5,9', 'rolled back');
$primary->safe_psql('postgres', "$work; PREPARE TRANSACTION 'p'");
crash($primary);
$primary->safe_psql('postgres', "ROLLBACK PREPARED 'p'");
looks_right($primary, $torn, '1,4,5,9', 'rolled back when it was prepared');
$primary->safe_psql('postgres', "$work; PREPARE TRANSACTION 'p'");
crash($primary);
$primary->safe_psql('postgres', "COMMIT PREPARED 'p'");
looks_right($primary, $torn, '1,2,4,5,6', 'committed when it was prepared');

# What replaces indexes, and rows, is replayed as well.
$primary->safe_psql('postgres', "REINDEX TABLE made1; ALTER TABLE made2 ALTER c TYPE bigint; ALTER TABLE made3 ADD COLUMN d int DEFAULT 1; TRUNCATE made4; INSERT INTO made4 VALUES (3, 'ab')");
$primary->safe_psql('postgres', 'VACUUM FULL made3');
crash($primary);
looks_right($primary, 'made1', '1,2,4,5,6', 'after REINDEX');
looks_right($primary, 'made2', '1,4,5,9', 'after a rewrite');
looks_right($primary, 'made3', '1,4,5,9', 'after VACUUM FULL');
looks_right($primary, 'made4', '3', 'after TRUNCATE');

# A snapshot of the standby that is older than the index does not use it.
$primary->safe_psql('postgres', "CREATE TABLE late (a int PRIMARY KEY, b text, c int DEFAULT 7) USING mot; INSERT INTO late SELECT g, 'ab' FROM generate_series(1, 4) g");
wait_replayed($primary, $standby);
my $old = $standby->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = off; SELECT count(*) FROM made1');
$primary->safe_psql('postgres', "UPDATE late SET b = 'new' WHERE a = 1; CREATE INDEX late_key ON late (f.key(b)); CREATE INDEX ON late (c) WHERE a > 2");
wait_replayed($primary, $standby);
is($old->query_safe("SELECT count(*) FROM late WHERE f.key(b) = 'AB2'"), '4', 'an older snapshot sees its rows');
$old->query_safe('COMMIT');
$old->quit;
looks_right($standby, 'late', '2,3,4', 'younger ones use it');

# The standby goes on as primary.
$primary->stop('immediate');
promote($standby);
looks_right($standby, 'made1', '1,2,4,5,6', 'after a promotion');
looks_right($standby, 'late', '2,3,4', 'after a promotion');
$standby->safe_psql('postgres', "UPDATE late SET b = 'aB' WHERE a = 1; INSERT INTO late VALUES (7, 'ab')");
looks_right($standby, 'late', '1,2,3,4,7', 'and as primary');

no_crash($standby);
done_testing();
