# Databases that come and go: their memory is given back on every server, also when the server is
# lost in the middle of a DROP DATABASE.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "allow_in_place_tablespaces = on\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
my $rows = 30_000;

# Storages of databases other than this one: nobody sees their tables from here.
my $others = q(SELECT count(*) FROM mot.storages() WHERE database <> (SELECT oid FROM pg_database WHERE datname = 'postgres'));

sub used { my ($node) = @_; return $node->safe_psql('postgres', 'SELECT arena_bytes_used FROM mot.stat_memory') }

sub make
{
	my ($name) = @_;
	$primary->safe_psql('postgres', "CREATE DATABASE $name");
	$primary->safe_psql($name, qq(CREATE EXTENSION mot;
		CREATE TABLE wide (id int PRIMARY KEY, v text) USING mot; CREATE INDEX ON wide (v);
		CREATE TABLE empty (id int PRIMARY KEY) USING mot;
		INSERT INTO wide SELECT i, repeat('v', 200) || i FROM generate_series(1, $rows) i));
	return;
}

# Nothing of the database is left, on either server.
sub is_gone
{
	my ($what, %before) = @_;
	wait_replayed($primary, $standby);
	for my $node ($primary, $standby)
	{
		ok($node->poll_query_until('postgres', $others, '0'), $node->name . ": no storages $what");
		next unless $before{ $node->name };
		my $limit = $before{ $node->name } + 4 * 1024 * 1024;
		ok($node->poll_query_until('postgres', "SELECT arena_bytes_used < $limit FROM mot.stat_memory"),
			$node->name . ": the memory is given back $what");
	}
	return;
}

# Dropped, and with it its memory and its place in checkpoints.
my %before = map { $_->name => used($_) } $primary, $standby;
make('one');
wait_replayed($primary, $standby);
# The standby's replay workers may still be at the last rows: only who reads rows waits for them.
for my $node ($primary, $standby)
{
	my $least = $before{ $node->name } + 200 * $rows;
	ok($node->poll_query_until('postgres', "SELECT arena_bytes_used > $least FROM mot.stat_memory"), $node->name . ': it takes memory');
}
$primary->safe_psql('postgres', 'CHECKPOINT; DROP DATABASE one');
is_gone('after the drop', %before);
$primary->safe_psql('postgres', 'CHECKPOINT');
crash($_) for $primary, $standby;
is_gone('after a crash that follows the drop', %before);

# The server is lost when the files of the database are gone and the drop is logged, ahead of its
# commit.
make('two');
wait_replayed($primary, $standby);
my $watch = $primary->background_psql('postgres');
SKIP:
{
	my ($code) = $primary->psql('postgres', 'SELECT mot.pause_points()');
	skip('no pause points in this build', 4) if $code != 0;
	$watch->query_safe(q(SELECT mot.pause_at('commit-after-log')));
	my $drop = $primary->background_psql('postgres', on_error_stop => 0);
	$drop->query_until(qr/begins/, "\\echo begins\nDROP DATABASE two;\n");
	$primary->poll_query_until('postgres', q(SELECT mot.paused('commit-after-log') = 1)) or die 'the drop does not come';
	$primary->kill9;
	wait_gone($primary);
	eval { $_->quit } for $drop, $watch;
	$primary->start;
	is($primary->safe_psql('postgres', $others), '2', 'lost in a drop: its storages are as they were');
	is($primary->safe_psql('postgres', q(SELECT count(*) FROM pg_database WHERE datname = 'two')), '1', 'and so is the database');
	wait_replayed($primary, $standby);
	is($standby->safe_psql('postgres', $others), '2', 'also on the standby');
}
$primary->safe_psql('postgres', 'DROP DATABASE two');
is_gone('dropped again');

# A drop that the server is lost right behind, before any checkpoint.
make('three');
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->safe_psql('postgres', 'DROP DATABASE three');
crash($primary);
is_gone('dropped since the last checkpoint');

# Sessions work on while DROP DATABASE waits for them to go: it takes what is there when they are
# gone, and nothing if they stay.
sub begin_drop
{
	my ($name) = @_;
	my $drop = $primary->background_psql('postgres', on_error_stop => 0);
	$drop->query_until(qr/begins/, "\\echo begins\nDROP DATABASE $name;\n");
	$primary->poll_query_until('postgres', qq(SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_database'::regclass
		AND objid = (SELECT oid FROM pg_database WHERE datname = '$name') AND mode = 'AccessExclusiveLock' AND granted)) or die 'no drop';
	return $drop;
}

make('seven');
my $session = $primary->background_psql('seven');
$session->query_safe('SELECT count(*) FROM wide');
my $waits = begin_drop('seven');
$session->query_safe(q(DROP TABLE empty; CREATE TABLE late (id int PRIMARY KEY, v text) USING mot; INSERT INTO late VALUES (1, 'late')));
$session->query_safe('TRUNCATE late; INSERT INTO late VALUES (2, $$later$$)');
$session->query_safe('BEGIN; TRUNCATE wide; INSERT INTO wide VALUES (1, $$new$$)');
$waits->query('SELECT 1');
like($waits->{stderr}, qr/database "seven" is being accessed by other users/, 'the session stays, and so does the database');
$waits->quit;
$session->query_safe('COMMIT');
for my $look ('after a drop that was given up', 'and after a crash')
{
	is($primary->safe_psql('seven', q(SELECT (SELECT string_agg(w::text, ',') FROM wide w) || (SELECT string_agg(l::text, ',') FROM late l))),
		'(1,new)(2,later)', "the tables are the session's $look");
	is($primary->safe_psql('seven', q(SELECT (mot.check('wide')).rows + (mot.check('late')).rows)), '2', "they are sound $look");
	wait_replayed($primary, $standby);
	for my $node ($primary, $standby)
	{
		ok($node->poll_query_until('postgres', $others, '2'), $node->name . ": two storages $look");
	}
	eval { $session->quit };
	crash($primary);
}
$session = $primary->background_psql('seven');
$session->query_safe('SELECT count(*) FROM wide');
$waits = begin_drop('seven');
$session->query_safe(qq(TRUNCATE wide; CREATE TABLE last (id int PRIMARY KEY, v text) USING mot;
	INSERT INTO last SELECT i, repeat('v', 200) FROM generate_series(1, $rows) i));
$session->quit;
$waits->query('SELECT 1');
$waits->quit;
is($primary->safe_psql('postgres', q(SELECT count(*) FROM pg_database WHERE datname = 'seven')), '0', 'the session has left: dropped');
is_gone('dropped while a session made and truncated tables');
$primary->safe_psql('postgres', 'CHECKPOINT');
crash($primary);
is_gone('and after a crash');

# A copy has the rows, on every server and after a crash. Its own session copies a database, too.
make('four');
$primary->safe_psql('four', q(UPDATE wide SET v = 'changed' WHERE id <= 10; DELETE FROM wide WHERE id = 11));
my $sums = q(SELECT count(*), count(*) FILTER (WHERE v = 'changed'), sum(id) FROM wide);
my $expected = $primary->safe_psql('four', $sums);
$primary->safe_psql('postgres', 'CREATE DATABASE five TEMPLATE four');
$primary->safe_psql('four', 'CREATE DATABASE files TEMPLATE four STRATEGY file_copy');
$primary->safe_psql('four', 'DELETE FROM wide');
for my $name (qw(five files))
{
	is($primary->safe_psql($name, $sums), $expected, "$name: the rows came along");
	is($primary->safe_psql($name, q(SELECT (mot.check('wide')).rows + (mot.check('empty')).rows)), $rows - 1, "$name: sound");
}
wait_replayed($primary, $standby);
is($standby->safe_psql('five', $sums), $expected, 'on the standby, too');
crash($primary);
is($primary->safe_psql($_, $sums), $expected, "$_: after a crash, too") for qw(five files);
$primary->safe_psql('postgres', 'CHECKPOINT');
crash($primary);
is($primary->safe_psql('five', $sums), $expected, 'and of a checkpoint');
wait_replayed($primary, $standby);
$primary->safe_psql('five', q(DELETE FROM wide; INSERT INTO wide VALUES (1, 'of five'); INSERT INTO empty VALUES (1)));
is($primary->safe_psql('files', q(SELECT count(*) FROM empty)), '0', 'each copy has rows of its own');
wait_replayed($primary, $standby);
is($standby->safe_psql('five', q(SELECT v FROM wide)), 'of five', 'on the standby as well');
$primary->safe_psql('postgres', 'DROP DATABASE files');

# Names and places of files are nothing to storages.
$primary->safe_psql('postgres', q(CREATE TABLESPACE elsewhere LOCATION ''));
$primary->safe_psql('postgres', 'ALTER DATABASE five SET TABLESPACE elsewhere');
$primary->safe_psql('postgres', 'ALTER DATABASE five RENAME TO six');
is($primary->safe_psql('six', q(SELECT v FROM wide)), 'of five', 'moved and renamed: the rows are there');
$primary->safe_psql('six', q(INSERT INTO wide VALUES (2, 'of six'); SELECT mot.check('wide')));
crash($primary);
is($primary->safe_psql('six', q(SELECT v FROM wide ORDER BY id)), "of five\nof six", 'moved, and lost');
wait_replayed($primary, $standby);
is($standby->safe_psql('six', q(SELECT v FROM wide ORDER BY id)), "of five\nof six", 'on the standby');
$primary->safe_psql('postgres', "DROP DATABASE $_") for qw(four six);
is_gone('at the end');
same_rows($primary, $standby, 'at the end');

no_crash($primary, $standby);
done_testing();
