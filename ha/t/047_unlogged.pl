# Unlogged tables: their rows stay over a clean restart, also a warm one, and are gone after every
# other start, where heap's are. Their definitions, and rows that SET LOGGED has logged, outlive
# all. Beside each memory-optimized table is a heap table that the same statements write.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @unlogged = ('u', 'h');

# Rows of both, and of the memory-optimized one by its indexes.
sub rows
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q(
SELECT (SELECT concat_ws(' ', count(*), sum(a), md5(string_agg(b, ',' ORDER BY a))) FROM u),
  (SELECT concat_ws(' ', count(*), sum(a), md5(string_agg(b, ',' ORDER BY a))) FROM h);
SET enable_seqscan = off;
SELECT count(*), (SELECT count(*) FROM u WHERE b > '') FROM u WHERE a > -1000000;));
}

sub alike
{
	my ($node, $what, $is_empty) = @_;
	my ($all, $by_index) = split /\n/, rows($node);
	my ($mot, $heap) = split /\|/, $all;
	is($mot, $heap, "$what: the rows are heap's");
	my ($count) = $mot =~ /^(\d+)/;
	$is_empty ? is($count, 0, "$what: there are none") : isnt($count, 0, "$what: there are some");
	is($by_index, "$count|$count", "$what: by the indexes, too");
	sound($node, $what, 'u');
	return;
}

# The same change of both.
sub change
{
	my ($node, $from) = @_;
	my $to = $from + 499;
	$node->safe_psql('postgres', join '', map {
		"INSERT INTO $_ SELECT i, 'b' || i FROM generate_series($from, $to) i; UPDATE $_ SET b = b || 'x' WHERE a % 7 = 0; DELETE FROM $_ WHERE a % 11 = 0;"
	} @unlogged);
	return;
}

my $primary = new_primary('primary', archiving => 1, conf => "autovacuum = off\nallow_in_place_tablespaces = on\n");
$primary->safe_psql('postgres', q(
CREATE UNLOGGED TABLE u (a int PRIMARY KEY, b text) USING mot;
CREATE INDEX u_b ON u (b);
CREATE UNLOGGED TABLE h (a int PRIMARY KEY, b text) USING heap;
CREATE TABLE beside (a int PRIMARY KEY) USING mot;
INSERT INTO beside VALUES (1)));
change($primary, 1);

# Clean restarts, with a checkpoint in between, without one, and with changes between two.
$primary->restart;
alike($primary, 'a clean restart');
$primary->restart;
alike($primary, 'a second one, nothing changed');
change($primary, 1001);
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->restart;
alike($primary, 'a clean restart behind a checkpoint');
change($primary, 2001);
$primary->safe_psql('postgres', 'INSERT INTO beside VALUES (2)');
$primary->restart;
alike($primary, 'a clean restart behind changes');

# What was changed after the clean start is in no file; nor is what was there before.
change($primary, 3001);
crash($primary);
alike($primary, 'a crash behind a clean restart', 1);
change($primary, 1);
$primary->safe_psql('postgres', 'CHECKPOINT');
crash($primary);
alike($primary, 'a crash behind a checkpoint', 1);
$primary->restart;
alike($primary, 'a clean restart behind a crash', 1);
change($primary, 1);
$primary->stop('immediate');
$primary->start;
alike($primary, 'an immediate shutdown', 1);

# A crash right behind a clean start, with nothing logged: core calls no resource manager then.
change($primary, 1);
$primary->restart;
crash($primary);
alike($primary, 'a crash right behind a clean restart', 1);

# Rolled back, and lost before the log has it: replay makes the init forks again, beside the empty
# files that a rollback leaves until the next checkpoint. Core's recovery alone stops there.
my $undone = $primary->background_psql('postgres');
$undone->query_safe('BEGIN; TRUNCATE u, h; CREATE UNLOGGED TABLE undone_mot (a int PRIMARY KEY) USING mot; CREATE UNLOGGED TABLE undone_heap (a int PRIMARY KEY) USING heap;');
$primary->safe_psql('postgres', 'CREATE TABLE flushes_the_log ()');
my $writer = process($primary, 'walwriter');
kill 'STOP', $writer;
$undone->query_safe('ROLLBACK;');
$primary->kill9;
kill 'KILL', $writer;
eval { $undone->quit };
wait_gone($primary);
$primary->start;
alike($primary, 'a rollback that the log lost', 1);
is($primary->safe_psql('postgres', q(SELECT count(*) FROM pg_class WHERE relname ~ '^undone')), '0', 'what was rolled back is not there');
$primary->safe_psql('postgres', 'DROP TABLE flushes_the_log');

# A crash of a backend.
change($primary, 1);
my ($victim) = $primary->background_psql('postgres', on_error_stop => 0);
my $pid = $victim->query_safe('SELECT pg_backend_pid()');
kill_backend($pid);
eval { $victim->quit };
$primary->poll_query_until('postgres', 'SELECT true') or die 'the server is not back';
alike($primary, 'a crash of a backend', 1);

# Prepared transactions: kept over a clean restart with their rows, and over a crash without.
for my $end ('COMMIT', 'ROLLBACK')
{
	change($primary, 1);
	$primary->safe_psql('postgres', "BEGIN; INSERT INTO $_ VALUES (-1, 'prepared'); UPDATE $_ SET b = 'prepared' WHERE a = 3; DELETE FROM $_ WHERE a = 4; PREPARE TRANSACTION 'p_$_'") for @unlogged;
	$primary->restart;
	my ($code) = $primary->psql('postgres', q(SET lock_timeout = '100ms'; UPDATE u SET b = 'taken' WHERE a = 3));
	isnt($code, 0, "$end PREPARED behind a restart: the row is held meanwhile");
	is($primary->safe_psql('postgres', q(SELECT count(*) FROM u WHERE b = 'prepared')), '0', 'nobody sees what is prepared');
	$primary->safe_psql('postgres', "$end PREPARED 'p_$_'") for @unlogged;
	is($primary->safe_psql('postgres', q(SELECT count(*) FROM u WHERE b = 'prepared')), $end eq 'COMMIT' ? '2' : '0', "$end PREPARED behind a restart");
	alike($primary, "$end PREPARED behind a restart");
	$primary->restart;
	alike($primary, "$end PREPARED behind a restart, and a second one");
	$primary->safe_psql('postgres', "BEGIN; INSERT INTO $_ VALUES (-2, 'prepared'); UPDATE $_ SET b = 'prepared' WHERE a = 5; PREPARE TRANSACTION 'p_$_'") for @unlogged;
	crash($primary);
	$primary->safe_psql('postgres', "$end PREPARED 'p_$_'") for @unlogged;
	alike($primary, "$end PREPARED behind a crash", 1);
}

# The row locks of a prepared transaction go with the rows that a crash takes. Others have their
# places then, and are nobody's after the next clean start.
change($primary, 1);
$primary->safe_psql('postgres', "BEGIN; SELECT count(*) FROM (SELECT FROM $_ FOR UPDATE) q; PREPARE TRANSACTION 'p_$_'") for @unlogged;
$primary->restart;
my ($is_free) = $primary->psql('postgres', q(SET lock_timeout = '100ms'; UPDATE u SET b = 'taken' WHERE a = 3));
isnt($is_free, 0, 'locked rows are held behind a clean restart');
crash($primary);
change($primary, 1);
$primary->restart;
alike($primary, 'other rows behind a crash');
$primary->safe_psql('postgres', "SET lock_timeout = '2s'; UPDATE $_ SET b = b || '!'") for @unlogged;
alike($primary, 'other rows are nobody\'s');
$primary->safe_psql('postgres', "COMMIT PREPARED 'p_$_'; TRUNCATE $_") for @unlogged;

# Warm restarts keep the memory.
$primary->append_conf('postgresql.conf', 'mot.warm_restart = on');
$primary->restart;
change($primary, 1);
$primary->restart;
alike($primary, 'a warm restart');
# The checkpoint worker says so, behind the start of the server and before the first rows.
like(slurp_file($primary->logfile), qr/mot warm restart: took over/, 'the restart is a warm one');
change($primary, 1001);
$primary->restart;
alike($primary, 'a second warm restart');
crash($primary);
alike($primary, 'a crash behind a warm restart', 1);
$primary->append_conf('postgresql.conf', 'mot.warm_restart = off');
$primary->restart;

# SET LOGGED and SET UNLOGGED: rows are what the last committed one says.
change($primary, 1);
my $before = (split /\n/, rows($primary))[0];
my $open = $primary->background_psql('postgres');
$open->query_safe('BEGIN; ALTER TABLE u SET LOGGED; ALTER TABLE h SET LOGGED;');
$primary->safe_psql('postgres', 'CHECKPOINT');
crash($primary);
eval { $open->quit };
alike($primary, 'a crash before the commit of SET LOGGED', 1);
for my $checkpoint ('', 'CHECKPOINT')
{
	change($primary, 1);
	$primary->safe_psql('postgres', "ALTER TABLE $_ SET LOGGED") for @unlogged;
	$primary->safe_psql('postgres', $checkpoint) if $checkpoint;
	change($primary, 1001);
	crash($primary);
	alike($primary, "SET LOGGED, $checkpoint, a crash");
	$primary->safe_psql('postgres', "ALTER TABLE $_ SET UNLOGGED") for @unlogged;
	alike($primary, "SET UNLOGGED $checkpoint");
	$primary->safe_psql('postgres', $checkpoint) if $checkpoint;
	crash($primary);
	alike($primary, "SET UNLOGGED, $checkpoint, a crash", 1);
}

# What makes new storages, in any order, and then a crash: definitions are whole.
$primary->safe_psql('postgres', q(CREATE TABLESPACE aside LOCATION ''));
$primary->safe_psql('postgres', $_) for 'ALTER TABLE u SET TABLESPACE aside', 'ALTER INDEX u_b SET TABLESPACE aside';
alike($primary, 'another tablespace', 1);
change($primary, 1);
$primary->safe_psql('postgres', 'ALTER TABLE u SET TABLESPACE pg_default; ALTER TABLE h SET TABLESPACE aside');
alike($primary, 'back from another tablespace');
$primary->restart;
alike($primary, 'back from another tablespace, a clean restart');
$primary->safe_psql('postgres', 'ALTER TABLE u SET TABLESPACE aside');
crash($primary);
alike($primary, 'another tablespace, a crash', 1);
$primary->safe_psql('postgres', $_) for 'ALTER TABLE u SET TABLESPACE pg_default', 'ALTER INDEX u_b SET TABLESPACE pg_default', 'ALTER TABLE h SET TABLESPACE pg_default', 'DROP TABLESPACE aside';
$primary->safe_psql('postgres', q(ALTER TABLE u ADD COLUMN c int DEFAULT 5; VACUUM FULL u; REINDEX TABLE u; TRUNCATE u; CREATE INDEX u_c ON u (c)));
change($primary, 1);
$primary->safe_psql('postgres', 'CLUSTER u USING u_b; REINDEX TABLE CONCURRENTLY u');
alike($primary, 'rewrites');
$primary->restart;
alike($primary, 'rewrites, a clean restart');
$primary->safe_psql('postgres', 'VACUUM FULL u');
crash($primary);
alike($primary, 'rewrites, a crash', 1);
change($primary, 1);
is($primary->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM u WHERE c = 5'), $primary->safe_psql('postgres', 'SELECT count(*) FROM u'), 'the new column');

# Base backup, standby, promotion. Backups are taken right after a clean start, when the files still
# have the rows.
$primary->restart;
$primary->backup('base');
change($primary, 1001);
my $standby = new_standby('standby', $primary, 'base');
$primary->safe_psql('postgres', q(INSERT INTO beside VALUES (3);
CREATE UNLOGGED TABLE later (a int PRIMARY KEY) USING mot; INSERT INTO later VALUES (1)));
wait_replayed($primary, $standby);
my (undef, undef, $error) = $standby->psql('postgres', 'SELECT count(*) FROM u');
like($error, qr/cannot access temporary or unlogged relations during recovery/, 'core refuses to read it on a standby');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM beside'), '3', 'others can be read');
$standby->restart;
change($primary, 2001);
wait_replayed($primary, $standby);
alike($primary, 'beside a standby');
promote($standby);
alike($standby, 'a promotion', 1);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM later'), '0', 'made while it was a standby');
change($standby, 1);
$standby->restart;
alike($standby, 'a clean restart behind a promotion');
crash($standby);
alike($standby, 'a crash behind a promotion', 1);
$standby->stop;

# A copy of a cleanly stopped server: started as it is, and recovered.
$primary->stop;
my %copies;
for my $name ('cold', 'cold_standby', 'cold_archive')
{
	my $node = $copies{$name} = PostgreSQL::Test::Cluster->new($name);
	PostgreSQL::Test::RecursiveCopy::copypath($primary->data_dir, $node->data_dir);
	chmod 0700, $node->data_dir;
	$node->append_conf('postgresql.conf', sprintf("port = %d\narchive_mode = off\nunix_socket_directories = '%s'\n", $node->port, $node->host));
}
$primary->start;
$copies{cold}->start;
alike($copies{cold}, 'a cold copy');
$copies{cold}->stop;
$copies{cold_standby}->append_conf('postgresql.conf', sprintf("primary_conninfo = '%s application_name=cold_standby'", $primary->connstr));
$copies{cold_standby}->set_standby_mode;
$copies{cold_standby}->start;
wait_replayed($primary, $copies{cold_standby});
promote($copies{cold_standby});
alike($copies{cold_standby}, 'a cold copy as a standby, promoted', 1);
$copies{cold_standby}->stop;
$primary->safe_psql('postgres', 'INSERT INTO beside VALUES (4); SELECT pg_switch_wal()');
$copies{cold_archive}->enable_restoring($primary, 0);
$copies{cold_archive}->append_conf('postgresql.conf', "recovery_target_timeline = 'current'\nrecovery_target = 'immediate'\nrecovery_target_action = 'promote'\n");
$copies{cold_archive}->start;
$copies{cold_archive}->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'the copy is not promoted';
alike($copies{cold_archive}, 'a cold copy recovered from the archive', 1);
$copies{cold_archive}->stop;

# A last checkpoint that fails: the shutdown goes on, as the log says, and the next start has no
# unlogged rows of ours.
chmod 0500, $primary->data_dir . '/mot';
$primary->stop;
chmod 0700, $primary->data_dir . '/mot';
like(slurp_file($primary->logfile), qr/could not write its last checkpoint; .* finds unlogged tables empty/, 'a last checkpoint that fails is told');
$primary->start;
is($primary->safe_psql('postgres', 'SELECT (SELECT count(*) FROM u), (SELECT count(*) FROM h) > 0, (SELECT count(*) FROM beside)'), '0|t|4', 'a last checkpoint that fails');
sound($primary, 'a last checkpoint that fails', 'u', 'beside');
like(slurp_file($primary->logfile), qr/unlogged memory-optimized tables begin empty: mot wrote no last checkpoint/, 'the start says so, too');
change($primary, 10001);

# The checkpoint worker is ended right before a shutdown: it stays for the sake of the rows.
$primary->safe_psql('postgres', 'TRUNCATE u, h');
change($primary, 1);
my $end_worker = 'SELECT pg_terminate_backend(worker_pid, 300) FROM mot.stat_checkpoint';
my $is_stayed = $primary->safe_psql('postgres', "SET client_min_messages = error; $end_worker");
$primary->restart;
alike($primary, 'the checkpoint worker ended before a shutdown');
is($is_stayed, 'f', 'it stays as long as there are rows');
# Without rows it goes. Those that come before it is back are kept, or their end is told.
$primary->safe_psql('postgres', 'TRUNCATE u, h');
$primary->poll_query_until('postgres', $end_worker) or die 'the worker stays';
change($primary, 1);
my $told = -s $primary->logfile;
$primary->restart;
if ($primary->safe_psql('postgres', 'SELECT count(*) FROM u') eq '0')
{
	$primary->wait_for_log(qr/unlogged memory-optimized tables begin empty/, $told);
	$primary->safe_psql('postgres', 'TRUNCATE h');
	change($primary, 1);
}
alike($primary, 'behind a shutdown without the worker');

# A drop takes all files.
my @files = map { $primary->data_dir . '/' . $primary->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") . '_init' } 'u', 'u_pkey', 'u_b';
ok(-e $_, "there is $_") for @files;
$primary->safe_psql('postgres', 'DROP TABLE u');
ok(!-e $_, "there is no $_ any more") for @files;
crash($primary);
is($primary->safe_psql('postgres', 'SELECT count(*) FROM beside'), '4', 'the rest is there');
$primary->stop;

done_testing();
