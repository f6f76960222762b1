# Prepared transactions over heap and memory-optimized rows: across clean restarts, crashes,
# standbys, promotion, a base backup and pg_rewind, ended by whoever is there then. They hold their
# rows, keys and row locks all the time.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "mot.checkpoint_retain = 1\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
my $load = start_load($primary, clients => 2);

# The ids from 10001 on are not the load's.
my $name = 0;

# While a transaction with more than 64 subtransactions is open, PostgreSQL lets nobody read a
# standby that starts: few of them there.
my $subtransactions = 79;

# Prepares a transaction that inserts, changes, deletes and locks twin rows; answers what to look
# at.
sub prepare
{
	my ($node) = @_;
	$name++;
	my ($new, $changed, $gone, $locked, $shared) = map { 10000 + 10 * $name + $_ } 1 .. 5;
	for my $table (qw(twin_heap twin_mot))
	{
		$node->safe_psql('postgres', "INSERT INTO $table VALUES ($changed, $name, 0, 'before'), ($gone, $name, 0, 'before'),
			($locked, $name, 0, 'locked'), ($shared, $name, 0, 'shared')");
	}
	my $work = join ' ', map { "INSERT INTO $_ VALUES ($new, $name, 1, 'new');
		SAVEPOINT s; UPDATE $_ SET k = -$name, note = 'after' WHERE id = $changed; RELEASE s;
		SAVEPOINT s; UPDATE $_ SET note = 'never' WHERE id = $gone; ROLLBACK TO s; DELETE FROM $_ WHERE id = $gone;
		SELECT FROM $_ WHERE id = $shared FOR SHARE; SAVEPOINT s; SELECT FROM $_ WHERE id = $locked FOR NO KEY UPDATE; RELEASE s;" } qw(twin_heap twin_mot);
	my $first = 100 * (1000 + $name);
	$work .= "DO \$\$ BEGIN FOR i IN $first .. $first + $subtransactions LOOP BEGIN INSERT INTO twin_heap VALUES (i, $name, 0, 'sub');
		INSERT INTO twin_mot VALUES (i, $name, 0, 'sub'); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$;";
	$node->safe_psql('postgres', "BEGIN; $work PREPARE TRANSACTION 'p$name'");
	return { name => "p$name", new => $new, changed => $changed, gone => $gone, locked => $locked, shared => $shared, sub => $first, subs => $subtransactions };
}

# Its rows and keys are held, and nothing of it is seen.
sub held
{
	my ($node, $p, $what) = @_;
	for my $table (qw(twin_heap twin_mot))
	{
		# One session for all of it, statement by statement: the suite spends its time on beginning psql.
		my @blocked = ("UPDATE $table SET note = 'x' WHERE id = $p->{changed}",
			"DELETE FROM $table WHERE id = $p->{gone}",
			"SELECT FROM $table WHERE id = $p->{gone} FOR KEY SHARE",
			"UPDATE $table SET note = 'x' WHERE id = $p->{locked}",
			"SELECT FROM $table WHERE id = $p->{locked} FOR SHARE",
			"DELETE FROM $table WHERE id = $p->{shared}",
			"SELECT FROM $table WHERE id = $p->{shared} FOR NO KEY UPDATE",
			"INSERT INTO $table VALUES ($p->{new}, 0, 0, 'x')",
			"INSERT INTO $table VALUES ($p->{sub} + 7, 0, 0, 'x')");
		my (undef, $out, $error) = $node->psql('postgres', join(";\n", "SET lock_timeout = '20ms'", @blocked,
				"SET lock_timeout = '2s'; SELECT string_agg(id || note, ' ' ORDER BY id) FROM $table WHERE id BETWEEN $p->{new} AND $p->{gone}",
				"BEGIN; SELECT note FROM $table WHERE id = $p->{locked} FOR KEY SHARE; SELECT note FROM $table WHERE id = $p->{shared} FOR SHARE; COMMIT;"),
			on_error_stop => 0);
		# The lines of the statements that were refused.
		my %refused = map { $_ => 1 } $error =~ /:(\d+): ERROR:  canceling statement due to lock timeout/g;
		my @free = grep { !$refused{ $_ + 2 } } 0 .. $#blocked;
		is("@blocked[@free]", '', "$what: $p->{name} is in the way of whoever wants its rows and keys in $table") or diag($error);
		is($out, "$p->{changed}before $p->{gone}before\nlocked\nshared", "$what: nothing of $p->{name} is seen in $table, and weaker locks are free") or diag($error);
	}
	return;
}

sub ended
{
	my ($node, $p, $commits, $what) = @_;
	my $expected = $commits ? "$p->{new}new $p->{changed}after" : "$p->{changed}before $p->{gone}before";
	my $subs = $commits ? $p->{subs} + 1 : 0;
	# Its row locks are gone with it.
	my $sql = join ";\n", ($commits ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$p->{name}'; SET lock_timeout = '2s'", map {
		"SELECT string_agg(id || note, ' ' ORDER BY id) FROM $_ WHERE id BETWEEN $p->{new} AND $p->{gone};
		SELECT count(*) FROM $_ WHERE id BETWEEN $p->{sub} AND $p->{sub} + 99;
		UPDATE $_ SET note = 'free' WHERE id IN ($p->{locked}, $p->{shared})"
	} qw(twin_heap twin_mot);
	is($node->safe_psql('postgres', $sql), "$expected\n$subs\n$expected\n$subs",
		"$what: $p->{name} " . ($commits ? 'committed' : 'rolled back') . ', with its subtransactions, in twin_heap and twin_mot');
	return;
}

sub all_held { my ($node, $what, @p) = @_; held($node, $_, $what) for @p; agrees($node, $what); return }

sub end_all
{
	my ($node, $what, @p) = @_;
	my $commits = 1;
	ended($node, $_, $commits = !$commits, $what) for @p;
	agrees($node, "$what, ended");
	sound($node, "$what, ended");
	# The rows change again, the keys are used again.
	for my $p (@p)
	{
		$node->safe_psql('postgres', "UPDATE $_ SET note = 'again', k = 7 WHERE id BETWEEN $p->{new} AND $p->{gone};
			INSERT INTO $_ VALUES ($p->{new}, 1, 1, 'again') ON CONFLICT (id) DO UPDATE SET note = 'met'") for qw(twin_heap twin_mot);
	}
	agrees($node, "$what, used again");
	sound($node, "$what, used again");
	return;
}

# In one server's life, beside a load, with checkpoints.
my @p = map { prepare($primary) } 1, 2;
$primary->safe_psql('postgres', 'CHECKPOINT');
all_held($primary, 'running', @p);
wait_replayed($primary, $standby);
agrees($standby, 'with prepared transactions open');
end_all($primary, 'running', @p);
stop_load($load);
same_rows($primary, $standby, 'after the first prepared transactions');

# Clean restarts.
@p = map { prepare($primary) } 1, 2;
$primary->restart;
all_held($primary, 'restart', @p);
$primary->restart;
all_held($primary, 'second restart', $p[0]);
end_all($primary, 'restart', @p);

# Crashes: prepared in the WAL, and from a checkpoint; with others that are lost in the midst.
for my $checkpoint (0, 1)
{
	@p = map { prepare($primary) } 1, 2;
	my $lost = $primary->background_psql('postgres');
	$lost->query_safe(q(BEGIN; UPDATE account_heap SET balance = balance - 5 WHERE id = 1; UPDATE account_mot SET balance = balance + 5 WHERE id = 1));
	$load = start_load($primary, clients => 2, may_fail => 1);
	$primary->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
	crash($primary);
	stop_load($load);
	eval { $lost->quit };
	my $what = $checkpoint ? 'crash after a checkpoint' : 'crash';
	all_held($primary, $what, @p);
	# Whoever was lost is in nobody's way.
	$primary->safe_psql('postgres', "SET lock_timeout = '2s'; UPDATE account_mot SET balance = balance WHERE id BETWEEN 1 AND 400");
	crash($primary);
	all_held($primary, "second $what", $p[1]);
	end_all($primary, $what, @p);
	crash($primary);
	agrees($primary, "$what: ended, and lost once more");
	sound($primary, "$what: ended, and lost once more");
}
same_rows($primary, $standby, 'after the crashes');

$subtransactions = 9;

# A standby that is killed with prepared transactions open, a base backup with them, and promotion.
@p = map { prepare($primary) } 1, 2;
$primary->backup('with_prepared');
wait_replayed($primary, $standby);
crash($standby);
my $other = new_standby('other', $primary, 'with_prepared');
wait_replayed($primary, $_) for $standby, $other;
agrees($_, 'with prepared transactions open') for $standby, $other;
$load = start_load($primary, clients => 2, may_fail => 1);
$primary->kill9;
stop_load($load);
wait_gone($primary);
promote($standby);
all_held($standby, 'promoted', @p);
crash($standby);
all_held($standby, 'promoted and lost', @p);
promote($other);
all_held($other, 'promoted from a backup', @p);
end_all($standby, 'promoted', @p);
end_all($other, 'promoted from a backup', @p);

# The old primary comes back; it had them, too.
$standby->safe_psql('postgres', 'CHECKPOINT');
my $open = prepare($standby);
command_ok([ 'pg_rewind', '--target-pgdata', $primary->data_dir, '--source-server', $standby->connstr('postgres'), '--no-sync', '--config-file',
		$primary->data_dir . '/postgresql.conf' ], 'pg_rewind with prepared transactions');
$primary->append_conf('postgresql.conf', 'port = ' . $primary->port . "\nunix_socket_directories = '" . $primary->host . "'\nprimary_conninfo = '"
	  . $standby->connstr . "'\n");
$primary->set_standby_mode;
$primary->start;
wait_replayed($standby, $primary);
agrees($primary, 'rejoined with a prepared transaction open');
ended($standby, $open, 1, 'after the rejoin');
same_rows($standby, $primary, 'after the rejoin');

no_crash($primary, $standby, $other);
done_testing();
