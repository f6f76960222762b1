# An index made on a primary that knows nothing of a standby's snapshots (no hot_standby_feedback):
# rows that have no key in it, and that only those snapshots see, are found by them all the same.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Removal of dead catalog rows would hold up replay: no vacuum, all definitions behind the snapshots
# in one transaction, and a snapshot on the primary that keeps what they replace.
my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
$primary->safe_psql('postgres', q(
CREATE TABLE keyless (id int NOT NULL, a int) USING mot;
CREATE TABLE longs (id int PRIMARY KEY, v text COLLATE "C") USING mot;
CREATE TABLE renamed (id int PRIMARY KEY, a int NOT NULL, b int) USING mot;
CREATE INDEX renamed_ab ON renamed (a, b);
INSERT INTO keyless SELECT i, nullif(i % 2, 0) FROM generate_series(1, 1000) i;
INSERT INTO longs SELECT i, CASE WHEN i % 100 = 0 THEN repeat('y', 20000) ELSE 'a' || i END FROM generate_series(1, 1000) i;
INSERT INTO renamed SELECT i, i, nullif(i % 2, 0) FROM generate_series(1, 1000) i;
));
wait_replayed($primary, $standby);

my %question = (
	keyless => 'SELECT count(*), sum(coalesce(a, 7)) FROM keyless WHERE id BETWEEN 1 AND 10',
	one     => 'SELECT count(*) FROM keyless WHERE id = 2 AND a IS NOT DISTINCT FROM NULL',
	by_id   => 'SELECT count(*), sum(coalesce(a, 7)) FROM keyless WHERE id = 2',
	longs   => q(SELECT count(*), sum(length(v)) FROM longs WHERE v > 'x' AND v < 'z'),
	changed => 'SELECT count(*), sum(coalesce(b, 7)) FROM renamed WHERE a BETWEEN 1 AND 10');
my %before = (keyless => '10|40', one => '1', by_id => '1|7', longs => '10|200000', changed => '10|40');
my %after = (keyless => '10|5', one => '0', by_id => '1|0', longs => '0|', changed => '10|5');
# From 17 on the planner takes IS NULL of a column that is NOT NULL now for false, whatever the
# snapshot, of heap tables as well: a constant that it does not see.
$question{one} =~ s/FROM NULL$/FROM nullif(pg_backend_pid(), pg_backend_pid())/ if $primary->pg_version >= 17;
# Planned anew for each execution, and once for all.
sub asks
{
	my ($session, $answers, $what) = @_;
	for my $which (sort keys %question)
	{
		is($session->query_safe($question{$which}), $answers->{$which}, "$what: $which");
		is($session->query_safe("EXECUTE $which"), $answers->{$which}, "$what: $which, prepared") for 1 .. 3;
	}
	return;
}

# They have no lock on the tables, so no definition conflicts with them.
my (@old, @names);
for my $level ('REPEATABLE READ', 'READ COMMITTED')
{
	my $session = $standby->background_psql('postgres');
	$session->query_safe("SET plan_cache_mode = force_generic_plan; SET mot.compiled_statements = always");
	$session->query_safe("PREPARE $_ AS $question{$_}") for sort keys %question;
	# Planned already when the index comes.
	asks($session, \%before, "$level, before");
	$session->query_safe("BEGIN ISOLATION LEVEL $level");
	# In READ COMMITTED an old snapshot stays beside those of the statements.
	$session->query_safe('DECLARE c CURSOR FOR SELECT 1 UNION ALL SELECT 2') if $level eq 'READ COMMITTED';
	$session->query_safe('SELECT 1');
	push @old, $session;
	push @names, $level;
}

$primary->safe_psql('postgres', q(UPDATE keyless SET a = 0 WHERE a IS NULL; UPDATE longs SET v = 'short' WHERE length(v) > 100;
	UPDATE renamed SET b = 0 WHERE b IS NULL));
# Nobody on the primary needs the old states: they are gone.
$primary->poll_query_until('postgres', q(SELECT sum(versions_stale) = 0 FROM mot.stat_tables WHERE relname IN ('keyless', 'longs', 'renamed')))
  or die 'nothing was removed';
my $keeper = $primary->background_psql('postgres');
$keeper->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$keeper->query_safe('SELECT 1');
$primary->safe_psql('postgres', q(BEGIN; ALTER TABLE keyless ADD PRIMARY KEY (id, a); CREATE INDEX longs_v ON longs (v);
	DROP INDEX renamed_ab; ALTER TABLE renamed ALTER b SET NOT NULL; CREATE INDEX renamed_ab ON renamed (a, b); COMMIT));
is($primary->safe_psql('postgres', q(SELECT count(*) FROM pg_index WHERE indcheckxmin AND indrelid IN ('keyless'::regclass, 'longs'::regclass, 'renamed'::regclass))),
	'0', 'the catalog keeps no index from anybody');
wait_replayed($primary, $standby);

asks($old[0], \%before, "$names[0], after");
asks($old[1], \%after, "$names[1], after");
my $new = $standby->background_psql('postgres');
$new->query_safe("SET plan_cache_mode = force_generic_plan; SET mot.compiled_statements = always");
$new->query_safe("PREPARE $_ AS $question{$_}") for sort keys %question;
asks($new, \%after, 'a new snapshot');
for my $which (sort keys %question)
{
	like($new->query_safe("EXPLAIN EXECUTE $which"), qr/Index(: | Scan using )"?(keyless_pkey|longs_v|renamed_ab)/, "a new snapshot uses the index: $which");
	# Keys of tables of the access method may be NULL, whatever the column: the index has the older
	# rows, too.
	next if $which ne 'longs';
	unlike($old[0]->query_safe("EXPLAIN EXECUTE $which"), qr/Index(: | Scan using )"?(keyless_pkey|longs_v|renamed_ab)/, "an old one does not: $which");
}

# Sessions, and their snapshots, go on over a promotion.
promote($standby);
asks($old[0], \%before, 'promoted');
$standby->safe_psql('postgres', 'UPDATE keyless SET a = a + 100 WHERE id <= 10');
is($old[0]->query_safe($question{keyless}), $before{keyless}, 'and beside new changes');
$_->query_safe('COMMIT') for @old;
$standby->safe_psql('postgres', 'UPDATE keyless SET a = a - 100 WHERE id <= 10');
asks($_, \%after, 'when its transaction is over') for @old;
for my $which (sort keys %question)
{
	like($old[0]->query_safe("EXPLAIN EXECUTE $which"), qr/Index(: | Scan using )"?(keyless_pkey|longs_v|renamed_ab)/, "and it uses the index: $which");
}
$_->quit for @old, $new, $keeper;
sound($standby, 'at the end', 'keyless', 'longs', 'renamed');
$standby->restart;
is($standby->safe_psql('postgres', $question{$_}), $after{$_}, "after a restart: $_") for sort keys %question;

no_crash($primary, $standby);
done_testing();
