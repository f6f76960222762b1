# Logical replication into a memory-optimized table without a key: the subscriber looks for each row
# by all its columns, and waits for whoever changes it. A heap table that gets the same changes is
# the oracle.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->start;
my $subscriber = new_primary('subscriber', conf => "wal_level = logical\n");

my $columns = '(a int, b text, c numeric)';
for my $table ('mem', 'oracle')
{
	$publisher->safe_psql('postgres', "CREATE TABLE $table $columns; ALTER TABLE $table REPLICA IDENTITY FULL;
		INSERT INTO $table SELECT g, 'first', g / 2.0 FROM generate_series(1, 50) g");
}
$subscriber->safe_psql('postgres', "CREATE TABLE mem $columns USING mot; CREATE TABLE oracle $columns USING heap");
$publisher->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE mem, oracle');
my $from = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$from' PUBLICATION p");
$subscriber->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_subscription_rel WHERE srsubstate IN ('r', 's')") or die 'no first copy';

# Runs a statement on both tables of the publisher.
sub change
{
	my ($statement) = @_;
	$publisher->safe_psql('postgres', join ';', map { $statement =~ s/TABLE/$_/gr } 'mem', 'oracle');
	return;
}

sub same
{
	my ($what) = @_;
	$publisher->wait_for_catchup('s');
	my $rows = "SELECT count(*) || ' ' || md5(string_agg(x::text, ';' ORDER BY x::text)) FROM";
	my $there = $publisher->safe_psql('postgres', "$rows mem x");
	is($subscriber->safe_psql('postgres', "$rows mem x"), $there, "$what: as at the publisher");
	is($subscriber->safe_psql('postgres', "$rows oracle x"), $there, "$what: as in a heap table");
	$subscriber->safe_psql('postgres', "SELECT * FROM mot.check('mem')");
	return;
}

same('first copy');
change("INSERT INTO TABLE VALUES (51, NULL, NULL), (51, NULL, NULL), (52, '', 0)");
change('UPDATE TABLE SET c = c + 1 WHERE a % 3 = 0');
change('DELETE FROM TABLE WHERE a % 5 = 0');
same('changes');
change("UPDATE TABLE SET b = 'second' WHERE a = 51");
change('BEGIN; UPDATE TABLE SET a = a + 100 WHERE a < 10; UPDATE TABLE SET a = a + 100 WHERE a BETWEEN 100 AND 105; DELETE FROM TABLE WHERE a = 106; COMMIT');
same('duplicates, NULLs, several changes in a transaction');

# Rows of before a column.
for my $node ($publisher, $subscriber)
{
	$node->safe_psql('postgres', "ALTER TABLE $_ ADD COLUMN d int DEFAULT 7, ADD COLUMN e text") for 'mem', 'oracle';
}
change('UPDATE TABLE SET d = 8 WHERE a = 11');
change('DELETE FROM TABLE WHERE a = 12');
same('columns that older rows lack');

# Somebody else is at the row: the worker waits for the end, and then finds the row as it is.
my $waits = "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%' AND wait_event_type = 'Lock'";
for my $case (
	[ 'an update that is rolled back', "UPDATE mem SET b = 'other' WHERE a = 13", 'ROLLBACK', 'UPDATE TABLE SET c = 100 WHERE a = 13' ],
	[ 'a deletion that is rolled back', 'DELETE FROM mem WHERE a = 14', 'ROLLBACK', 'DELETE FROM TABLE WHERE a = 14' ],
	[ 'a row lock', 'SELECT FROM mem WHERE a = 16 FOR UPDATE', 'COMMIT', 'UPDATE TABLE SET c = 100 WHERE a = 16' ],
	[ 'an update to the row as it was', "UPDATE mem SET b = 'other' WHERE a = 17; UPDATE mem SET b = 'first' WHERE a = 17", 'COMMIT', 'DELETE FROM TABLE WHERE a = 17' ],
	[ 'an update of a savepoint', "SAVEPOINT x; UPDATE mem SET b = 'other' WHERE a = 18; ROLLBACK TO x; SELECT FROM mem WHERE a = 18 FOR SHARE", 'COMMIT', 'DELETE FROM TABLE WHERE a = 18' ])
{
	my ($what, $before, $end, $change) = @$case;
	my $session = $subscriber->background_psql('postgres');
	$session->query_safe("BEGIN; $before");
	change($change);
	ok($subscriber->poll_query_until('postgres', $waits), "$what: the worker waits");
	$session->query_safe($end);
	$session->quit;
	same($what);
}

# A row that somebody inserts is waited for, and found when it is there.
change("INSERT INTO TABLE VALUES (900, 'new', 1)");
$publisher->wait_for_catchup('s');
$subscriber->safe_psql('postgres', 'DELETE FROM mem WHERE a = 900');
my $session = $subscriber->background_psql('postgres');
$session->query_safe("BEGIN; INSERT INTO mem VALUES (900, 'new', 1)");
change('DELETE FROM TABLE WHERE a = 900');
ok($subscriber->poll_query_until('postgres', $waits), 'the worker waits for the insertion');
$session->query_safe('COMMIT');
$session->quit;
same('a row that was just inserted');

# Somebody deletes the row for good: it is not found, and the worker goes on.
my $other = $subscriber->background_psql('postgres');
$other->query_safe('BEGIN; DELETE FROM mem WHERE a = 19; DELETE FROM oracle WHERE a = 19');
change('UPDATE TABLE SET c = 100 WHERE a = 19');
ok($subscriber->poll_query_until('postgres', $waits), 'the worker waits for the deletion');
$other->query_safe('COMMIT');
$other->quit;
change('DELETE FROM TABLE WHERE a = 19');
same('a row that is gone here');

# All of it is there after a crash.
change('UPDATE TABLE SET c = c * 2, b = b || a');
$publisher->wait_for_catchup('s');
crash($subscriber);
change('DELETE FROM TABLE WHERE a > 40');
same('after a crash');

no_crash($subscriber);
done_testing();
