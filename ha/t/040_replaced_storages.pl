# A table's storage is replaced in a transaction that has changed the table before and changes it
# after: TRUNCATE, a rewrite, SET ACCESS METHOD, REINDEX, with savepoints that keep them and that
# take them back. After a crash, on a standby and promoted, from the log and from a checkpoint, the
# rows and keys are those of heap tables, for which the same statements ran.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

my %replacing = (
	truncate   => 'TRUNCATE $t;',
	rewrite    => 'ALTER TABLE $t ALTER v TYPE bigint USING v * 10;',
	column     => 'ALTER TABLE $t ADD COLUMN more float8 DEFAULT random();',
	reindex    => 'REINDEX TABLE $t;',
	to_heap    => 'ALTER TABLE $t SET ACCESS METHOD heap;',
	there_back => 'ALTER TABLE $t SET ACCESS METHOD heap; UPDATE $t SET v = v + 100 WHERE id < 4; ALTER TABLE $t SET ACCESS METHOD $method;',
	key        => 'ALTER TABLE $t DROP CONSTRAINT $t_key; ALTER TABLE $t ADD CONSTRAINT $t_key UNIQUE (v, id);');
# What surrounds it: rows of before and of the transaction, changed, deleted, moved.
my %around = (
	plain => 'BEGIN; INSERT INTO $t VALUES (11, 11); UPDATE $t SET v = v + 1 WHERE id < 6; DELETE FROM $t WHERE id IN (4, 10); $replacing
		INSERT INTO $t VALUES (12, 12), (10, 20); UPDATE $t SET v = v + 1 WHERE id IN (5, 11); DELETE FROM $t WHERE id = 6; COMMIT;',
	kept => 'BEGIN; UPDATE $t SET v = v + 1 WHERE id < 6; SAVEPOINT s; INSERT INTO $t VALUES (11, 11); $replacing INSERT INTO $t VALUES (12, 12); RELEASE s;
		UPDATE $t SET v = v + 2 WHERE id > 8; COMMIT;',
	taken_back => 'BEGIN; UPDATE $t SET v = v + 1 WHERE id < 6; SAVEPOINT s; INSERT INTO $t VALUES (11, 11); $replacing INSERT INTO $t VALUES (12, 12); ROLLBACK TO s;
		INSERT INTO $t VALUES (11, 30); UPDATE $t SET v = v + 2 WHERE id > 8; COMMIT;',
	twice => 'BEGIN; INSERT INTO $t VALUES (11, 11); $replacing INSERT INTO $t VALUES (13, 13); SAVEPOINT s; TRUNCATE $t; INSERT INTO $t VALUES (1, 1); ROLLBACK TO s;
		UPDATE $t SET v = v + 1 WHERE id = 13; REINDEX TABLE $t; INSERT INTO $t VALUES (14, 14); COMMIT;',
	made => 'BEGIN; DROP TABLE $t; CREATE TABLE $t (id int PRIMARY KEY, v int, CONSTRAINT $t_key UNIQUE (v, id)) USING $method; INSERT INTO $t VALUES (1, 1), (2, 2); $replacing
		INSERT INTO $t VALUES (3, 3); SAVEPOINT s; DELETE FROM $t; ROLLBACK TO s; COMMIT;',
	undone => 'BEGIN; INSERT INTO $t VALUES (11, 11); $replacing INSERT INTO $t VALUES (12, 12); ROLLBACK;');

my (@tables, $sql);
for my $method (qw(heap mot))
{
	for my $how (sort keys %replacing)
	{
		for my $where (sort keys %around)
		{
			my $t = "${method}_${how}_$where";
			push @tables, "${how}_$where" if $method eq 'mot';
			$sql .= "CREATE TABLE $t (id int PRIMARY KEY, v int, CONSTRAINT ${t}_key UNIQUE (v, id)) USING $method; CREATE INDEX ON $t (v); INSERT INTO $t SELECT i, i FROM generate_series(1, 10) i;\n";
		}
	}
}
$primary->safe_psql('postgres', $sql);
# Rows from a checkpoint, changed by the log.
$primary->safe_psql('postgres', 'CHECKPOINT');

sub change
{
	my ($method, $table) = @_;
	my ($how, $where) = grep { defined } map { $table =~ /^\Q$_\E_(.*)$/ ? ($_, $1) : () } keys %replacing;
	my $t = "${method}_$table";
	my $statements = $around{$where} =~ s/\$replacing/$replacing{$how}/gr;
	return $statements =~ s/\$t\b(?!_)/$t/gr =~ s/\$t_key/${t}_key/gr =~ s/\$method/$method/gr;
}

# Rows, and what a look-up by each key finds.
sub rows
{
	my ($node, $method) = @_;
	return $node->safe_psql('postgres', join ";\n", map {
		my $t = "${method}_$_";
		("SELECT '$_', string_agg(concat(id, ' ', v), ', ' ORDER BY id) FROM $t",
			'SET enable_seqscan = off', "SELECT count(*), count(*) FILTER (WHERE f.id IS NOT NULL) FROM (SELECT id, v FROM $t OFFSET 0) r LEFT JOIN LATERAL (SELECT id FROM $t t WHERE t.id = r.id AND t.v = r.v) f ON true",
			"SELECT count(*) FROM $t WHERE v > 0", 'RESET enable_seqscan')
	} @tables);
}

sub compared
{
	my ($node, $what) = @_;
	is(rows($node, 'mot'), rows($node, 'heap'), $node->name . ": rows and keys $what");
	my @ours = split /\n/, $node->safe_psql('postgres', q(SELECT c.relname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'mot' AND relname LIKE 'mot\_%'));
	ok(@ours > 30, $node->name . ': most of them are memory-optimized');
	return sound($node, $what, @ours);
}

for my $method (qw(heap mot))
{
	$primary->safe_psql('postgres', join "\n", map { change($method, $_) } @tables);
}
compared($primary, 'as they were changed');
wait_replayed($primary, $standby);
compared($standby, 'as they were replayed');
crash($primary);
compared($primary, 'after a crash');
# Keys hold.
is($primary->safe_psql('postgres', qq(
DO \$\$
DECLARE t text; found text;
BEGIN
  FOREACH t IN ARRAY '{@{[join ',', @tables]}}'::text[] LOOP
    BEGIN
      EXECUTE format('INSERT INTO %I (id, v) SELECT id, v FROM %1\$I LIMIT 1', 'mot_' || t);
      EXECUTE format('SELECT min(id) FROM %I', 'mot_' || t) INTO found;
      IF found IS NOT NULL THEN RAISE EXCEPTION 'a key of % is there twice', t; END IF;
    EXCEPTION WHEN unique_violation THEN NULL;
    END;
  END LOOP;
END \$\$)), '', 'no key can be there twice');
$primary->restart;
compared($primary, 'after a clean restart');
wait_replayed($primary, $standby);
$primary->stop('immediate');
promote($standby);
compared($standby, 'promoted');
$standby->safe_psql('postgres', join ';', map { ("UPDATE mot_$_ SET v = v + 1000", "UPDATE heap_$_ SET v = v + 1000") } @tables);
crash($standby);
compared($standby, 'changed, and after a crash');

no_crash($primary, $standby);
done_testing();
