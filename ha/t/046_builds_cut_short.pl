# CREATE INDEX CONCURRENTLY that ends with its server, beside a prepared transaction that was not
# asked for uniqueness, nor for the length of a key: over a crash and over a promotion, committed
# and rolled back there. And with a definition that was logged, and whose transaction was not.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $state = q(SELECT coalesce((SELECT concat_ws(' ', CASE WHEN indisready THEN 'ready' END, CASE WHEN indisvalid THEN 'valid' END)
  FROM pg_index WHERE indexrelid = to_regclass('t_b')), 'none'));
my $by_index = q(SET enable_seqscan = off; SELECT count(*), count(DISTINCT b), max(length(b)) FROM t WHERE b > '');

# A statement that stands at a point, and who lets it go.
sub stop_at
{
	my ($primary, $point, $statement) = @_;
	my $pauser = $primary->background_psql('postgres');
	$pauser->query_safe("SELECT mot.pause_at('$point')");
	my $session = $primary->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	$primary->safe_psql('postgres', "SELECT mot.wait_until_paused('$point')");
	return ($pauser, $session);
}

# The server that goes on: the same behind a crash, or the standby.
sub cut
{
	my ($primary, $standby, $how, @sessions) = @_;
	wait_replayed($primary, $standby) if $how eq 'promotion';
	$primary->stop('immediate');
	eval { $_->{run}->kill_kill } for @sessions;
	if ($how eq 'promotion')
	{
		promote($standby);
		return $standby;
	}
	$primary->start;
	return $primary;
}

sub refused
{
	my ($node, $statement, $by, $what) = @_;
	my (undef, undef, $error) = $node->psql('postgres', $statement);
	like($error, $by, $what);
	return;
}

my $number = 0;
for my $case ([ 'crash', 'COMMIT' ], [ 'crash', 'ROLLBACK' ], [ 'promotion', 'COMMIT' ], [ 'promotion', 'ROLLBACK' ])
{
	my ($how, $end) = @$case;
	my $what = "$how, $end PREPARED";
	$number++;
	my $primary = new_primary("primary$number", conf => "autovacuum = off\n");
	$primary->backup('base');
	my $standby = new_standby("standby$number", $primary, 'base');
	$primary->safe_psql('postgres', q(
CREATE TABLE t (a int PRIMARY KEY, b text) USING mot;
INSERT INTO t SELECT i, 'k' || i FROM generate_series(1, 100) i));
	my ($pauser, $maker) = stop_at($primary, 'build-before-ready', 'CREATE UNIQUE INDEX CONCURRENTLY t_b ON t (b)');
	$primary->safe_psql('postgres', q(
BEGIN;
INSERT INTO t VALUES (101, 'k1'), (102, repeat('long', 5000));
UPDATE t SET b = 'moved' WHERE a = 3;
SAVEPOINT s;
UPDATE t SET b = repeat('long', 5000) WHERE a = 4;
UPDATE t SET b = 'k5' WHERE a = 3;
DELETE FROM t WHERE a = 6;
ROLLBACK TO s;
UPDATE t SET b = 'again' WHERE a = 4;
PREPARE TRANSACTION 'w'));
	$pauser->query_safe(q(SELECT mot.resume('build-before-ready')));
	$primary->poll_query_until('postgres', "SELECT ($state) = 'ready'") or die 'the index is not ready';
	my $node = cut($primary, $standby, $how, $pauser, $maker);
	is($node->safe_psql('postgres', $state), 'ready', "$what: what is left");
	my $taken = qr/duplicate key value violates unique constraint "t_b"/;
	my $waits = qr/canceling statement due to lock timeout/;
	refused($node, q(INSERT INTO t VALUES (200, 'k2')), $taken, "$what: a key of a row");
	refused($node, q(SET lock_timeout = '50ms'; INSERT INTO t VALUES (200, 'moved')), $waits, "$what: a key of a prepared row");
	refused($node, q(SET lock_timeout = '50ms'; INSERT INTO t VALUES (200, 'k3')), $waits, "$what: a key that a prepared row may keep");
	refused($node, q(INSERT INTO t VALUES (200, repeat('long', 5000))), qr/exceeds maximum/, "$what: a long key");
	$node->safe_psql('postgres', "$end PREPARED 'w'");
	sound($node, "$what, ended", 't');
	refused($node, q(INSERT INTO t VALUES (200, 'k1')), $taken, "$what: ended, a key that two rows may have");
	if ($end eq 'COMMIT')
	{
		refused($node, 'REINDEX INDEX t_b', qr/exceeds maximum/, "$what: a long key is in the way");
		$node->safe_psql('postgres', 'DELETE FROM t WHERE a = 102');
		refused($node, 'REINDEX INDEX t_b', qr/could not create unique index "t_b"/, "$what: a duplicate is in the way");
		$node->safe_psql('postgres', 'DELETE FROM t WHERE a = 101');
	}
	$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_b');
	is($node->safe_psql('postgres', $state), 'ready valid', "$what: rebuilt");
	is($node->safe_psql('postgres', $by_index), '100|100|5', "$what: rows by the index") if $end eq 'COMMIT';
	is($node->safe_psql('postgres', $by_index), '100|100|4', "$what: rows by the index") if $end ne 'COMMIT';
	sound($node, "$what, rebuilt", 't');
	crash($node);
	sound($node, "$what, at the end", 't');
	no_crash($node);
	$_->stop('immediate') for $primary, $standby;
}

# The definition is in the log, the commit is not.
my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
$primary->safe_psql('postgres', q(
CREATE TABLE t (a int PRIMARY KEY, b text) USING mot;
INSERT INTO t SELECT i, 'k' || i FROM generate_series(1, 100) i));
my @sessions = stop_at($primary, 'commit-after-log', 'CREATE UNIQUE INDEX CONCURRENTLY t_b ON t (b)');
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
my $node = cut($primary, $standby, 'promotion', @sessions);
is($node->safe_psql('postgres', $state), '', 'a definition without its commit: not ready');
$node->safe_psql('postgres', q(INSERT INTO t VALUES (101, 'k1'), (102, repeat('long', 5000)); UPDATE t SET b = 'x' WHERE a < 3; DELETE FROM t WHERE a > 101));
sound($node, 'a definition without its commit', 't');
refused($node, 'REINDEX INDEX CONCURRENTLY t_b', qr/could not create unique index|violates unique/, 'a definition without its commit: a duplicate is in the way');
$node->safe_psql('postgres', q(UPDATE t SET b = 'y' WHERE a = 2; DROP INDEX t_b_ccnew; REINDEX INDEX CONCURRENTLY t_b));
is($node->safe_psql('postgres', $state), 'ready valid', 'a definition without its commit: rebuilt');
is($node->safe_psql('postgres', $by_index), '101|101|4', 'a definition without its commit: rows by the index');
sound($node, 'a definition without its commit, rebuilt', 't');
no_crash($node);
done_testing();
