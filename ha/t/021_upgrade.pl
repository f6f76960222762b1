# pg_upgrade brings rows and keys along, by copies and by links: the new cluster has what the old
# one had, and works on. Its catalogs are frozen as without the library, whatever the transaction
# ids. Where the rows cannot be had, pg_upgrade fails and the old cluster is as it was.
use strict;
use warnings;

use Cwd;
use File::Basename qw(dirname);
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $here = Cwd::abs_path(dirname(__FILE__));
my @tables = qw(changed gone keys unlogged seen parts parts_mot child empty emptied account_mot twin_mot);

sub new_cluster
{
	my ($name, $libraries) = @_;
	my $new = PostgreSQL::Test::Cluster->new($name);
	$new->init(extra => [ '-E', 'UTF8', '--locale=C.UTF-8' ]);
	$new->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\nmot.max_memory = '192MB'\nmax_prepared_transactions = 10\n");
	return $new;
}

# Runs pg_upgrade; answers whether it succeeded, and what it and its servers said.
sub upgrade
{
	my ($old, $new, @options) = @_;
	my $bin = $old->config_data('--bindir');
	# It leaves files where it runs; the logs' names begin here.
	my $before = getcwd();
	chdir $PostgreSQL::Test::Utils::tmp_check or die;
	my ($out, $err) = ('', '');
	my $succeeded = IPC::Run::run(
		[
			$old->installed_command('pg_upgrade'), '--no-sync', '--retain', @options, '-d', $old->data_dir, '-D', $new->data_dir, '-b', $bin, '-B', $bin,
			'-s', $new->host, '-p', $old->port, '-P', $new->port
		],
		'>', \$out, '2>', \$err);
	chdir $before or die;
	my $logs = join('', map { slurp_file($_) } glob($new->data_dir . '/pg_upgrade_output.d/*/log/*'));
	return ($succeeded, "$out$err$logs");
}

# Every row of every table, and what the indexes find.
sub all_rows
{
	my ($node) = @_;
	my $rows = digest($node) . "\n";
	$rows .= $node->safe_psql('postgres', "SELECT '$_', count(*), md5(string_agg(t::text, E'\\n' ORDER BY t::text COLLATE \"C\")) FROM $_ t") . "\n" for @tables;
	my $indexed = 'SET enable_seqscan = off; SET enable_sort = off;';
	$rows .= $node->safe_psql('postgres', $indexed . $_) . "\n" for (
		"SELECT count(*) FROM keys WHERE key(t) = 'C212'",
		"SELECT string_agg(n::text, ' ') FROM (SELECT n FROM keys WHERE m = 'good' ORDER BY n) s",
		"SELECT string_agg(n::text, ' ') FROM (SELECT n FROM keys ORDER BY n USING <#) s",
		'SELECT string_agg(t, \' \') FROM (SELECT t FROM keys ORDER BY t COLLATE german) s',
		"SELECT count(*) FROM keys WHERE t COLLATE nocase = 'B1'",
		"SELECT count(*) FROM keys WHERE upper(t) COLLATE german BETWEEN 'C' AND 'F'",
		'SELECT string_agg(id::text, \' \') FROM (SELECT id FROM keys ORDER BY m, p) s',
		"SELECT count(*) FROM changed WHERE last = 'missing'",
		'SELECT count(*) FROM parts WHERE id = 50');
	return $rows . $node->safe_psql('other', 'SELECT count(*), sum(id) FROM elsewhere');
}

my $check_all = "SELECT mot.check(c.oid::regclass) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'mot'";
sub all_sound
{
	my ($node) = @_;
	$node->safe_psql($_, $check_all) for qw(postgres other);
	return;
}

# Where the rows cannot be had.
sub fails
{
	my ($from, $name, $libraries, $says) = @_;
	my $new = new_cluster($name, $libraries);
	my ($succeeded, $said) = upgrade($from, $new);
	ok(!$succeeded, "$name: pg_upgrade fails");
	like($said, $says, "$name: and says why");
	return $new;
}

# In every database, shared catalogs included.
sub freezes
{
	my ($node, $what) = @_;
	my ($out, $err) = ('', '');
	my $done = IPC::Run::run([ $node->installed_command('vacuumdb'), '--all', '--freeze', '-h', $node->host, '-p', $node->port ],
		'>', \$out, '2>', \$err);
	ok($done, "$what: every row can be frozen") or diag($err);
	return;
}

# The new cluster's own transactions are ahead of the old one's, or long past.
foreach my $at ([ 'young', undef ], [ 'far', 3_000_000_000 ])
{
	my ($name, $next_xid) = @$at;
	my $from = PostgreSQL::Test::Cluster->new($name);
	$from->init(allows_streaming => 1, extra => [ '-E', 'UTF8', '--locale=C.UTF-8' ]);
	$from->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\nmot.max_memory = '64MB'\n");
	Ledger::begin_at($from, $next_xid) if defined $next_xid;
	$from->start;
	$from->safe_psql('postgres', 'CREATE EXTENSION mot; CREATE TABLE t (id int PRIMARY KEY) USING mot; INSERT INTO t SELECT generate_series(1, 100)');
	# A storage whose table was dropped while nobody could see to it is in no catalog.
	$from->safe_psql('postgres', 'CREATE TABLE dropped (id int) USING mot; INSERT INTO dropped VALUES (1); ALTER EVENT TRIGGER mot_require_preload DISABLE');
	$from->stop;
	$from->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
	$from->start;
	$from->safe_psql('postgres', 'DROP TABLE dropped; ALTER EVENT TRIGGER mot_require_preload ENABLE');
	$from->stop;
	$from->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\n");
	my $to = new_cluster("${name}_new", 'mot');
	my ($succeeded, $said) = upgrade($from, $to);
	ok($succeeded, "$name: pg_upgrade") or diag($said);
	like($said, qr/but for tables that are in no catalog/, "$name: what is in no catalog is left out");
	$to->start;
	is($to->safe_psql('postgres', "SELECT count(*) FROM t; SELECT mot.check('t') IS NOT NULL"), "100\nt", "$name: all rows are there");
	freezes($to, $name);
	$to->stop;

	# An older copy of the directory, which the old server would not load: the WAL behind it is gone.
	my $directory = $from->data_dir . '/mot';
	PostgreSQL::Test::RecursiveCopy::copypath($directory, "$directory.older");
	$from->start;
	$from->safe_psql('postgres', $_) for ('DELETE FROM t WHERE id > 50', 'SELECT pg_switch_wal()', 'CHECKPOINT') x 3;
	$from->stop;
	File::Path::rmtree($directory);
	rename "$directory.older", $directory or die;
	fails($from, "${name}_stale", 'mot', qr/left no note/);
	$_->clean_node for $from, $to;
}

my $old = new_primary('old', conf => "autovacuum = off\n");
$old->safe_psql('postgres', slurp_file("$here/../lib/$_")) for 'absolute_order.sql', 'before_upgrade.sql';
$old->safe_psql('postgres', 'CREATE DATABASE other');
$old->safe_psql('other', 'CREATE EXTENSION mot; CREATE TABLE elsewhere (id int PRIMARY KEY) USING mot; INSERT INTO elsewhere SELECT generate_series(1, 1000)');
my $rows = all_rows($old);
all_sound($old);
$old->stop;


# The old server has no library and does not say where its rows are, or the new one has none.
$old->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
my $without = fails($old, 'old_without', 'mot', qr/mot could not take over the rows of the old cluster: the old server has left no note/);
# An administrator says where they are.
append_to_file($without->data_dir . '/mot/upgrade-awaits-rows', $old->data_dir . "\n");
$without->start;
is(all_rows($without), $rows, 'all rows are there by word of an administrator');
all_sound($without);
$without->stop;
$old->append_conf('postgresql.conf', "shared_preload_libraries = 'mot'\n");
fails($old, 'new_without', '', qr/mot must be loaded|shared_preload_libraries/);

$old->start;
is(all_rows($old), $rows, 'the old cluster is as it was');
all_sound($old);
my @filenode = split /\|/, $old->safe_psql('other', "SELECT pg_relation_filepath('elsewhere'), system_identifier FROM pg_control_system()");
is(-s $old->data_dir . "/$filenode[0]", 0, 'a table\'s file is empty again');

# By copies. The old cluster works on beside the new one, which knows nothing of it.
$old->stop;
my $copied = new_cluster('copied', 'mot');
my ($succeeded, $said) = upgrade($old, $copied);
ok($succeeded, 'pg_upgrade with copies') or diag($said);
$old->start;
$old->safe_psql('postgres', "DELETE FROM keys; INSERT INTO empty VALUES (1, 'old')");
$old->stop;
$copied->start;
is(all_rows($copied), $rows, 'all rows are in the new cluster');
all_sound($copied);
is(-s $copied->data_dir . "/$filenode[0]", 0, 'a table\'s file is empty');
isnt($copied->safe_psql('postgres', 'SELECT system_identifier FROM pg_control_system()'), $filenode[1], 'it is another cluster');
is(join(' ', glob($copied->data_dir . '/mot/upgrade-*')), '', 'no mark is left');
is(join(' ', grep { (stat)[3] > 1 } glob($copied->data_dir . '/mot/rows-*')), '', 'it shares no file with the old cluster');
freezes($copied, 'with copies');

# Keys, constraints and sequences go on where they were.
my ($code, $out, $err) = $copied->psql('postgres', q(
INSERT INTO keys (t, n, m, p, d) VALUES ('zz', 2000, 'fair', ROW(1, 'x'), 200);
SELECT max(id) FROM keys;
INSERT INTO keys (t, n, m, p, d) VALUES ('zz', -2000, 'fair', ROW(1, 'x'), 201);
INSERT INTO keys (t, n, m, p, d) VALUES ('zz', 2001, 'fair', ROW(1, 'x'), 200);
INSERT INTO child VALUES (1, 15);
DELETE FROM changed WHERE id = 5;
UPDATE keys SET t = 'moved' WHERE n = 2000;
SELECT count(*) FROM keys WHERE key(t) = 'MOVED5';
INSERT INTO changed (id, kept) VALUES (500, 'x');
SELECT later, twice, last FROM changed WHERE id = 500;
), on_error_stop => 0);
is($out, "101\n1\n7|1000|missing", 'statements do what they did');
like($err, qr/keys_label.*keys_only.*child_mot_fkey.*child_mot_fkey/s, 'and fail as they did');
my $after = all_rows($copied);
# A crash empties the unlogged table.
my $after_crash = $after =~ s/unlogged\|50\|\w+/unlogged|0|/r;

# Restarts of all kinds, a backup, and logged changes on rows of before.
$copied->stop('immediate');
$copied->start;
is(all_rows($copied), $after_crash, 'rows after a crash');
all_sound($copied);
$copied->restart;
is(all_rows($copied), $after_crash, 'rows after a restart');
no_crash($copied);

# By links. The old cluster is removed before the new one starts, which is upgraded once more.
$old->start;
$rows = all_rows($old);
$old->stop;
my $linked = new_cluster('linked', 'mot');
($succeeded, $said) = upgrade($old, $linked, '--link');
ok($succeeded, 'pg_upgrade with links') or diag($said);
my $again = new_cluster('again', 'mot');
($succeeded, $said) = upgrade($linked, $again);
ok($succeeded, 'pg_upgrade of a cluster that has just been upgraded') or diag($said);
File::Path::rmtree($_->data_dir) for $old, $linked;
$again->start;
is(all_rows($again), $rows, 'all rows are there after two');
all_sound($again);
no_crash($again);
done_testing();
