# Logical replication out of memory-optimized tables: what is decoded is what heap tables give, a
# subscriber has each transaction whole, over crashes of the publisher, and standbys replay past it.
use strict;
use warnings;

use FindBin;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $conf = "wal_level = logical\nlogical_decoding_work_mem = 64kB\nmax_replication_slots = 20\nmax_wal_senders = 20\n";
my $publisher = new_primary('publisher', conf => $conf);

# The same changes on both kinds of table.
my (%decoded, %local);
for my $method ('heap', 'mot')
{
	my $database = "of_$method";
	$publisher->safe_psql('postgres', "CREATE DATABASE $database");
	$publisher->safe_psql($database, "CREATE EXTENSION mot; ALTER DATABASE $database SET default_table_access_method = $method");
	$publisher->safe_psql($database, "SELECT pg_create_logical_replication_slot('$_$method', 'test_decoding')") for 'all_', 'local_';
	my ($output, $errors);
	$publisher->psql($database, slurp_file("$FindBin::Bin/../lib/decoded_changes.sql"),
		stdout => \$output, stderr => \$errors, on_error_stop => 0);
	# Read behind a crash: the log has all of it.
	crash($publisher) if $method eq 'mot';
	my $changes = sub {
		my ($slot, $options) = @_;
		return $publisher->safe_psql($database,
			"SELECT data FROM pg_logical_slot_get_changes('$slot', NULL, NULL, 'include-xids', '0', 'skip-empty-xacts', '1'$options)");
	};
	$decoded{$method} = $output . $errors =~ s/^psql:.*?: //gmr . $changes->("all_$method", '');
	$local{$method} = $changes->("local_$method", q(, 'only-local', '1'));
}
is($decoded{mot}, $decoded{heap}, 'changes of both kinds of table are decoded alike');
is($local{mot}, $local{heap}, 'and so without those of elsewhere');
like($decoded{mot}, qr/of somewhere else/, 'which were there');
unlike($local{mot}, qr/of somewhere else/, 'and are left out');
cmp_ok(scalar(() = $decoded{mot} =~ /^table /gm), '>', 80, 'many changes');

# What is logged of old rows stays in memory no longer than its record is made.
my $largest = $publisher->safe_psql('of_mot', q(
	CREATE TABLE long_keys (id text PRIMARY KEY);
	INSERT INTO long_keys SELECT repeat(md5(g::text), 40) || g FROM generate_series(1, 20000) g;
	CREATE TABLE largest (bytes bigint) USING heap;
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO largest SELECT used_bytes FROM pg_backend_memory_contexts WHERE name = 'ExecutorState'; RETURN NULL; END $$;
	CREATE TRIGGER note AFTER UPDATE OR DELETE ON long_keys FOR EACH STATEMENT EXECUTE FUNCTION note();
	UPDATE long_keys SET id = id || 'x'; DELETE FROM long_keys; SELECT max(bytes) < 4000000 FROM largest));
is($largest, 't', 'no memory for each row');

# A row that is inserted for a key that another transaction holds, and taken back.
$publisher->safe_psql('of_mot', 'CREATE TABLE rivals (id int PRIMARY KEY, n int)');
my $holder = $publisher->background_psql('of_mot');
$holder->query_safe('BEGIN; INSERT INTO rivals VALUES (1, 0)');
my $waiter = $publisher->background_psql('of_mot');
$waiter->query_until(qr/begun/, "\\echo begun\nINSERT INTO rivals VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = rivals.n + 10;\n");
$publisher->poll_query_until('of_mot', q(SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock')) or die 'does not wait';
$holder->query_safe('COMMIT');
$holder->quit;
$waiter->quit;
is($publisher->safe_psql('of_mot', q(SELECT data FROM pg_logical_slot_get_changes('all_mot', NULL, NULL, 'include-xids', '0', 'skip-empty-xacts', '1')
	WHERE data LIKE 'table public.rivals%')),
	"table public.rivals: INSERT: id[integer]:1 n[integer]:0\ntable public.rivals: UPDATE: id[integer]:1 n[integer]:10",
	'a row that gives way is not decoded');
$publisher->safe_psql('postgres', "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE plugin = 'test_decoding'");

# A subscriber, with first copies beside a load; a standby, which replays records that mean it not.
$publisher->backup('b');
my $standby = new_standby('standby', $publisher, 'b');
my $subscriber = new_primary('subscriber');
$subscriber->safe_psql('postgres', 'TRUNCATE account_heap, account_mot, twin_heap, twin_mot');
$subscriber->safe_psql('postgres', 'ALTER TABLE twin_heap SET ACCESS METHOD mot; CREATE TABLE parts (id int PRIMARY KEY, note text, n int) USING mot');
$publisher->safe_psql('postgres', q(
	CREATE TABLE parts (id int, note text, n int DEFAULT 0, PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (1000) USING mot;
	CREATE TABLE high PARTITION OF parts FOR VALUES FROM (1000) TO (2000) USING heap;
	INSERT INTO parts SELECT g, 'first' FROM generate_series(1, 1999, 3) g;
	CREATE PUBLICATION p FOR TABLE account_heap, account_mot, twin_heap, twin_mot;
	CREATE PUBLICATION q FOR TABLE parts (id, note) WHERE (id % 2 = 1) WITH (publish_via_partition_root);
));
my $load = start_load($publisher, may_fail => 1);
my $from = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$from' PUBLICATION p WITH (streaming = on, two_phase = on)");
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s2 CONNECTION '$from' PUBLICATION q");
$subscriber->poll_query_until('postgres', "SELECT count(*) = 5 FROM pg_subscription_rel WHERE srsubstate = 'r'") or die 'no first copy';
$publisher->safe_psql('postgres', q(
	BEGIN; INSERT INTO twin_heap SELECT g, 1, 1, repeat('streamed', 20) FROM generate_series(100000, 101999) g; INSERT INTO twin_mot SELECT * FROM twin_heap WHERE id >= 100000;
	SAVEPOINT a; DELETE FROM twin_heap WHERE id >= 101000; DELETE FROM twin_mot WHERE id >= 101000; ROLLBACK TO a;
	UPDATE twin_mot SET note = 'changed' WHERE id >= 101500; UPDATE twin_heap SET note = 'changed' WHERE id >= 101500; COMMIT;
	BEGIN; INSERT INTO account_mot VALUES (500000, 7); INSERT INTO account_heap VALUES (500000, -7); PREPARE TRANSACTION 'two';
));
crash($publisher);
stop_load($load);
$publisher->safe_psql('postgres', "COMMIT PREPARED 'two'");
$load = start_load($publisher);
$publisher->safe_psql('postgres', q(
	UPDATE parts SET note = note || id WHERE id < 500;
	UPDATE parts SET id = id + 1 WHERE id BETWEEN 300 AND 320;
	UPDATE parts SET id = 1000 + id WHERE id BETWEEN 1 AND 7;
	DELETE FROM parts WHERE id BETWEEN 400 AND 450;
));
stop_load($load);
$publisher->wait_for_catchup($_) for 's', 's2';
is(digest($subscriber), digest($publisher), 'the subscriber has all rows');
agrees($subscriber, 'at the subscriber');
sound($subscriber, 'at the subscriber');
my $parts = 'SELECT string_agg(id || note, \' \' ORDER BY id) FROM parts';
is($subscriber->safe_psql('postgres', $parts), $publisher->safe_psql('postgres', "$parts WHERE id % 2 = 1"), 'and the published rows and columns of partitions');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM parts WHERE n IS NOT NULL'), '0', 'and no others');
same_rows($publisher, $standby, 'beside logical replication');
$publisher->safe_psql('postgres', 'TRUNCATE twin_heap, twin_mot');
$publisher->wait_for_catchup('s');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM twin_mot'), '0', 'TRUNCATE');

no_crash($subscriber, $standby);
done_testing();
