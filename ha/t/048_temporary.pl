# Temporary tables: they go with their session, whatever ends it, and with the server, whatever ends
# that. Nobody else loses anything. The log and standbys never hear of them.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "restart_after_crash = on\nautovacuum = on\nautovacuum_naptime = 1s\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

my $of_tables = 'SELECT count(*) FROM mot.storages()';
my $storages = $primary->safe_psql('postgres', $of_tables);
my $temporary = q(SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relam = (SELECT oid FROM pg_am WHERE amname = 'mot'));

# A session that has tables of all kinds, with rows, and an open transaction that has made some and
# dropped others.
sub begin
{
	my ($node) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe($_)
	  for (
		'SET default_table_access_method = mot',
		'CREATE TEMP TABLE tt_keep (id int PRIMARY KEY, v text)',
		q(INSERT INTO tt_keep SELECT g, repeat('x', 200) FROM generate_series(1, 20000) g),
		'CREATE TEMP TABLE tt_rows (id int PRIMARY KEY) ON COMMIT DELETE ROWS',
		'CREATE TEMP TABLE tt_gone (id int PRIMARY KEY)',
		'BEGIN',
		'INSERT INTO tt_rows SELECT generate_series(1, 1000)',
		'CREATE TEMP TABLE tt_drop (id int PRIMARY KEY) ON COMMIT DROP',
		'INSERT INTO tt_drop VALUES (1)',
		'DROP TABLE tt_gone',
		'TRUNCATE tt_keep',
		'INSERT INTO tt_keep SELECT generate_series(1, 1000)');
	return $session;
}

# Nothing is left of temporary tables: neither in the catalog nor in memory.
sub is_clean
{
	my ($node, $what) = @_;
	ok($node->poll_query_until('postgres', "SELECT ($temporary) = 0"), "no temporary table is left in the catalog after $what");
	ok($node->poll_query_until('postgres', "SELECT ($of_tables) = $storages"), "no storage is left after $what");
	return;
}

# A session that leaves, with and without an open transaction.
my $session = begin($primary);
cmp_ok($primary->safe_psql('postgres', $of_tables), '>', $storages, 'a session has temporary tables');
$session->quit;
is_clean($primary, 'a session that leaves in a transaction');
$session = begin($primary);
$session->query_safe('COMMIT');
is($session->query_safe('SELECT (SELECT count(*) FROM tt_keep), (SELECT count(*) FROM tt_rows)'), '1000|0', 'what a commit leaves');
$session->quit;
is_clean($primary, 'a session that leaves');

# One that is ended: while it waits for its client, and in the middle of an insert.
$session = begin($primary);
$primary->safe_psql('postgres', q(SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO tt_keep%'));
is_clean($primary, 'a session that is ended');
eval { $session->quit };
$session = begin($primary);
$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO tt_rows SELECT g FROM generate_series(1001, 100000000) g;\n");
$primary->poll_query_until('postgres', q(SELECT max(row_ids) > 100000 FROM mot.stat_tables WHERE relname = 'tt_rows'));
$primary->safe_psql('postgres', q(SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO tt_rows%'));
is_clean($primary, 'a session that is ended in an insert');
eval { $session->quit };

# A limit that one session meets, and another does not.
my $other = begin($primary);
$session = begin($primary);
$session->query_safe('COMMIT');
$session->query_safe(q(SET mot.temp_memory = '4MB'));
$session->query_safe(q(DO $$ BEGIN
	INSERT INTO tt_keep SELECT g, repeat('x', 200) FROM generate_series(10001, 10000000) g;
EXCEPTION WHEN out_of_memory THEN CREATE TEMP TABLE tt_was_full (); END $$));
is($session->query_safe(q(SELECT count(*), to_regclass('tt_was_full') FROM tt_keep)), '1000|tt_was_full', 'a session at its limit goes on');
$other->query_safe(q(INSERT INTO tt_keep SELECT g, repeat('x', 200) FROM generate_series(10001, 60000) g));
is($other->query_safe('SELECT count(*) FROM tt_keep'), '51000', 'another one has its rows');

# A backend that is killed: all others go, and the catalog has tables that nothing stands behind.
my $pid = $session->query_safe('SELECT pg_backend_pid()');
kill_backend($pid);
eval { $_->quit } for $session, $other;
$primary->poll_query_until('postgres', q(SELECT state = 'ready' FROM mot.stat_recovery)) or die 'not loaded';
is($primary->safe_psql('postgres', $of_tables), $storages, 'no temporary table has a storage after a crash');
is_clean($primary, 'a crash');

# The server is lost, with and without a checkpoint behind the tables; it is stopped, cold and warm.
for my $how ('kill -9', 'a checkpoint and kill -9', 'immediate', 'fast', 'warm')
{
	if ($how eq 'warm')
	{
		$primary->append_conf('postgresql.conf', "mot.warm_restart = on\n");
		$primary->restart;
	}
	$session = begin($primary);
	$primary->safe_psql('postgres', 'CHECKPOINT') if $how =~ /checkpoint/;
	if ($how =~ /kill/)
	{
		crash($primary);
	}
	else
	{
		$primary->stop($how eq 'warm' ? 'fast' : $how);
		$primary->start;
	}
	eval { $session->quit };
	$primary->poll_query_until('postgres', q(SELECT state = 'ready' FROM mot.stat_recovery)) or die 'not loaded';
	is($primary->safe_psql('postgres', $of_tables), $storages, "no temporary table has a storage after $how");
	is_clean($primary, $how);
}

# A table that a crash has left without a storage is dropped by whoever may, without a word.
$primary->safe_psql('postgres', 'ALTER SYSTEM SET autovacuum = off; SELECT pg_reload_conf()');
$session = begin($primary);
$session->query_safe('COMMIT');
crash($primary);
eval { $session->quit };
$primary->poll_query_until('postgres', q(SELECT state = 'ready' FROM mot.stat_recovery)) or die 'not loaded';
my $name = $primary->safe_psql('postgres', q(SELECT oid::regclass FROM pg_class WHERE relname = 'tt_keep' AND relpersistence = 't'));
SKIP:
{
	# The first session afterwards has cleaned its schema up, if it had the same number.
	skip 'cleaned up', 3 if $name eq '';
	my (undef, undef, $left) = $primary->psql('postgres', "SELECT mot.check('$name')");
	like($left, qr/temporary table "tt_keep" is what is left of a session that has ended/, 'the check of a table without a storage says what it is');
	is($primary->safe_psql('postgres', "SELECT pg_total_relation_size('$name') >= 0"), 't', 'its size is that of its files');
	my ($code, $out, $err) = $primary->psql('postgres', "DROP TABLE $name");
	is("$code|$err", '0|', 'a table without a storage is dropped');
}
$session = $primary->background_psql('postgres');
my @sessions = map { begin($primary) } 1 .. 8;
$_->quit for @sessions;
$session->quit;
$primary->safe_psql('postgres', 'ALTER SYSTEM RESET autovacuum; SELECT pg_reload_conf()');
is_clean($primary, 'new sessions in the same schemas');

wait_replayed($primary, $standby);
is($standby->safe_psql('postgres', $of_tables), $storages, 'a standby has heard of none');
same_rows($primary, $standby, 'at the end');
no_crash($standby);
done_testing();
