# Indexes on columns that older rows lack (ADD COLUMN ... DEFAULT) across recoveries: the value is
# in the catalog, which replay and loading do not ask. After each, index and rows agree, on the
# primary, on a standby and on a server made of a base backup.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

# The rows by the index and without it, a duplicate, and what mot.check says.
sub looks_right
{
	my ($node, $table, $value, $expected, $what) = @_;
	my $by_index = $node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off;
		SELECT string_agg(a::text, ',' ORDER BY a) FROM $table WHERE c = $value");
	is($by_index, $expected, "$what: by the index");
	my $by_rows = $node->safe_psql('postgres', "SET enable_indexscan = off; SELECT string_agg(a::text, ',' ORDER BY a) FROM $table WHERE c = $value");
	is($by_rows, $expected, "$what: by the rows");
	$node->safe_psql('postgres', "SELECT * FROM mot.check('$table')") if $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 'f';
	return;
}

# Another table for each way; its rows 1 to 4 are older than column and index, row 5 is younger.
my $number = 0;
sub make_table
{
	my ($between) = @_;
	$number++;
	my $table = "late$number";
	$primary->safe_psql('postgres', "CREATE TABLE $table (a int PRIMARY KEY, b text) USING mot;
		INSERT INTO $table SELECT g, 'b' || g FROM generate_series(1, 4) g");
	$primary->safe_psql('postgres', 'CHECKPOINT') if $between =~ /rows/;
	$primary->safe_psql('postgres', "ALTER TABLE $table ADD COLUMN c int DEFAULT 7");
	$primary->safe_psql('postgres', 'CHECKPOINT') if $between =~ /column/;
	$primary->safe_psql('postgres', "CREATE INDEX ON $table (c); CREATE UNIQUE INDEX ON $table (c, a); INSERT INTO $table VALUES (5, 'b5', 7)");
	$primary->safe_psql('postgres', 'CHECKPOINT') if $between =~ /index/;
	return $table;
}

# Changes of older rows that a recovery replays: of another column, of this one, away.
sub change
{
	my ($table) = @_;
	$primary->safe_psql('postgres', "UPDATE $table SET b = b || '!' WHERE a = 1; UPDATE $table SET c = 8 WHERE a = 2; DELETE FROM $table WHERE a = 3");
	return;
}

my %tables;
for my $between ('nothing', 'rows', 'column', 'index', 'rows and column and index')
{
	my $table = make_table($between);
	$tables{$table} = $between;
	looks_right($primary, $table, 7, '1,2,3,4,5', "$between, before a crash");
}
crash($primary);
looks_right($primary, $_, 7, '1,2,3,4,5', "$tables{$_}, after a crash") for sort keys %tables;
for my $table (sort keys %tables)
{
	change($table);
	my ($status, undef, $error) = $primary->psql('postgres', "INSERT INTO $table VALUES (4, 'again', 9)");
	like($error, qr/duplicate key/, "$tables{$table}: the key is kept");
	($status, undef, $error) = $primary->psql('postgres', "CREATE UNIQUE INDEX ON $table (c)");
	like($error, qr/could not create unique index/, "$tables{$table}: older rows have the value twice");
}
crash($primary);
for my $table (sort keys %tables)
{
	looks_right($primary, $table, 7, '1,4,5', "$tables{$table}, changes replayed");
	looks_right($primary, $table, 8, '2', "$tables{$table}, the changed one");
}
wait_replayed($primary, $standby);
looks_right($standby, $_, 7, '1,4,5', "$tables{$_}, on the standby") for sort keys %tables;

# A clean restart loads the checkpoint; so does a server made of a backup.
$primary->restart;
looks_right($primary, $_, 7, '1,4,5', "$tables{$_}, after a clean restart") for sort keys %tables;
$primary->backup('later');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($primary, 'later');
$copy->start;
looks_right($copy, $_, 7, '1,4,5', "$tables{$_}, in a copy") for sort keys %tables;
$copy->stop;

# The transaction that adds the column is torn by a crash, and another one takes its place.
my $torn = 'torn';
$primary->safe_psql('postgres', "CREATE TABLE $torn (a int PRIMARY KEY) USING mot; INSERT INTO $torn SELECT generate_series(1, 4)");
my $session = $primary->background_psql('postgres');
$session->query_safe("BEGIN; ALTER TABLE $torn ADD COLUMN c int DEFAULT 5; CREATE INDEX ON $torn (c); INSERT INTO $torn VALUES (5); SELECT pg_switch_wal()");
crash($primary);
eval { $session->quit };
$primary->safe_psql('postgres', "ALTER TABLE $torn ADD COLUMN c text DEFAULT 'five'; CREATE INDEX ON $torn (c)");
looks_right($primary, $torn, "'five'", '1,2,3,4', 'another column of its number');

# A prepared transaction changes older rows; its end comes after a crash.
$primary->safe_psql('postgres', "BEGIN; UPDATE $torn SET c = 'six' WHERE a = 1; DELETE FROM $torn WHERE a = 2; INSERT INTO $torn VALUES (6); PREPARE TRANSACTION 'p'");
crash($primary);
is($primary->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM $torn WHERE c = 'five'"), '4', 'prepared changes are not seen');
$primary->safe_psql('postgres', "ROLLBACK PREPARED 'p'");
looks_right($primary, $torn, "'five'", '1,2,3,4', 'rolled back');
$primary->safe_psql('postgres', "BEGIN; UPDATE $torn SET c = 'six' WHERE a = 1; DELETE FROM $torn WHERE a = 2; INSERT INTO $torn VALUES (6); PREPARE TRANSACTION 'p'");
crash($primary);
$primary->safe_psql('postgres', "COMMIT PREPARED 'p'");
looks_right($primary, $torn, "'five'", '3,4,6', 'committed');

# What replaced the index, and the rows, is replayed as well.
$primary->safe_psql('postgres', "REINDEX TABLE $torn; ALTER TABLE late1 ALTER c TYPE bigint; ALTER TABLE late2 DROP COLUMN b; TRUNCATE late3; INSERT INTO late3 VALUES (1)");
crash($primary);
looks_right($primary, $torn, "'five'", '3,4,6', 'after REINDEX');
looks_right($primary, 'late1', 7, '1,4,5', 'after a rewrite');
looks_right($primary, 'late2', 7, '1,4,5', 'after another column went');
looks_right($primary, 'late3', 7, '1', 'after TRUNCATE');

# The standby goes on as primary.
wait_replayed($primary, $standby);
looks_right($standby, 'late2', 7, '1,4,5', 'on the standby');
$primary->stop('immediate');
promote($standby);
looks_right($standby, 'late2', 7, '1,4,5', 'after a promotion');
looks_right($standby, $torn, "'five'", '3,4,6', 'after a promotion');
like(($standby->psql('postgres', "CREATE UNIQUE INDEX ON late2 (c)"))[2], qr/could not create unique index/, 'unique there, neither');
$standby->safe_psql('postgres', 'DELETE FROM late2 WHERE c = 7; INSERT INTO late2 VALUES (1)');
looks_right($standby, 'late2', 7, '1', 'older rows are gone');

no_crash($standby);
done_testing();
