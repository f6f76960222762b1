# Prepared transactions that create, drop, empty, alter and rewrite tables, and one that locks
# 100,000 rows: across clean and warm restarts, crashes, checkpoints, on standbys, through
# promotion, a base backup and a recovery to a point in time, ended by whoever is there then, and in
# another order than prepared. The same is done to heap tables, whose rows and keys must agree.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', archiving => 1, conf => "autovacuum = off\nmot.checkpoint_retain = 1\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

my %cases = (
	create   => 'CREATE TABLE $t_new (id int PRIMARY KEY, v int REFERENCES $t) USING $method; INSERT INTO $t_new SELECT i, i FROM generate_series(1, 5) i; CREATE INDEX ON $t_new (v DESC);',
	drop     => 'INSERT INTO $t VALUES (11, 11); DROP TABLE $t;',
	truncate => 'UPDATE $t SET v = v + 1; TRUNCATE $t; INSERT INTO $t VALUES (1, 7), (12, 12);',
	alter    => 'ALTER TABLE $t ALTER v TYPE bigint USING v * 10, ADD w int DEFAULT 5; UPDATE $t SET v = v + 1 WHERE id < 5; DELETE FROM $t WHERE id = 9;',
	method   => 'ALTER TABLE $t SET ACCESS METHOD heap; UPDATE $t SET v = -v WHERE id > 5;',
	adopt    => 'CREATE TABLE $t_new (id int PRIMARY KEY, v int) USING heap; INSERT INTO $t_new SELECT i, i FROM generate_series(1, 5) i; ALTER TABLE $t_new SET ACCESS METHOD $method;',
	index    => 'DROP INDEX $t_v; CREATE UNIQUE INDEX $t_both ON $t (v, id);',
	reindex  => 'DELETE FROM $t WHERE id = 3; REINDEX TABLE $t; INSERT INTO $t VALUES (3, 33);',
	cluster  => 'UPDATE $t SET v = 100 - v; CLUSTER $t USING $t_v; INSERT INTO $t VALUES (13, 13);',
	short    => 'CREATE TABLE $t_new (id int PRIMARY KEY, v int) USING $method; INSERT INTO $t_new VALUES (1, 1); DROP TABLE $t_new; INSERT INTO $t VALUES (14, 14);',
	saved    => 'SAVEPOINT s; TRUNCATE $t; INSERT INTO $t VALUES (1, 1); ROLLBACK TO s; SAVEPOINT s; DROP INDEX $t_v; RELEASE s; UPDATE $t SET v = v + 1;');

sub statements
{
	my ($sql, $method, $t) = @_;
	return $sql =~ s/\$method/$method/gr =~ s/\$t/$t/gr;
}

# Tables of both methods with the same rows, and two transactions that do all of the above to them,
# one to be committed and one to be rolled back.
my $stage = 0;

sub stage
{
	my ($node) = @_;
	$stage++;
	for my $fate (qw(c r))
	{
		my ($sql, $work) = ('', '');
		for my $method (qw(heap mot))
		{
			for my $case (sort keys %cases)
			{
				my $t = "${method}_${case}_$fate$stage";
				$sql .= "CREATE TABLE $t (id int PRIMARY KEY, v int) USING $method; CREATE INDEX ${t}_v ON $t (v); INSERT INTO $t SELECT i, i FROM generate_series(1, 10) i;\n";
				$work .= statements($cases{$case}, $method, $t) . "\n";
			}
		}
		$node->safe_psql('postgres', $sql);
		$node->safe_psql('postgres', "BEGIN; $work PREPARE TRANSACTION '$fate$stage'");
	}
	return $stage;
}

# All that there is of tables of a method: rows by a scan, by keys, and the indexes.
sub content
{
	my ($node, $method, $suffix) = @_;
	my $sql = qq(SET lock_timeout = '5s'; SELECT c.relname FROM pg_class c WHERE relkind = 'r' AND relname ~ '^${method}_.*_$suffix(_new)?\$' ORDER BY 1);
	my @tables = split /\n/, $node->safe_psql('postgres', $sql);
	return '' unless @tables;
	my $found = $node->safe_psql('postgres', join ";\n", 'SET enable_seqscan = off', map {
		("SELECT '$_', (SELECT string_agg(replace(indexrelid::regclass::text, '$method', 'x'), ' ' ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indrelid = '$_'::regclass)",
			"SELECT string_agg(t::text, ' ' ORDER BY id) FROM $_ t WHERE id > 0", "SELECT string_agg(t::text, ' ' ORDER BY id) FROM $_ t WHERE v > -1000")
	} @tables);
	return $found =~ s/\b${method}_/x_/gr;
}

sub agree
{
	my ($node, $suffix, $what) = @_;
	my ($heap, $mot) = map { content($node, $_, $suffix) } qw(heap mot);
	is($mot, $heap, "$what: tables of $suffix are as heap tables") or diag($mot);
	# And each of them is sound.
	$node->safe_psql('postgres', "SELECT mot.check(c.oid::regclass) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'mot' AND relkind = 'r' AND relname ~ '_$suffix(_new)?\$'");
	return $mot;
}

# What nobody has locked, and no transaction has made, is as before: that of a table that is in
# nobody's way. The others are held.
sub held
{
	my ($node, $what, @stages) = @_;
	for my $stage (@stages)
	{
		for my $fate (qw(c r))
		{
			my $new = $node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname ~ '_$fate${stage}_(new|both)'");
			is($new, 0, "$what: nothing of $fate$stage is seen");
			my (undef, $out, $error) = $node->psql('postgres', join(";\n", "SET lock_timeout = '20ms'",
					map { my $case = $_; map { "SELECT count(*) FROM ${_}_${case}_$fate$stage" } qw(heap mot) } qw(drop truncate alter method cluster)), on_error_stop => 0);
			is(() = $error =~ /canceling statement due to lock timeout/g, 10, "$what: $fate$stage holds its tables") or diag("$out $error");
			is($node->safe_psql('postgres', "SELECT string_agg(v::text, ' ' ORDER BY id) FROM mot_create_$fate$stage"), join(' ', 1 .. 10), "$what: what it only refers to is read");
		}
	}
	return;
}

# Ends both, the younger one first, and compares. `turned`: the other way round.
sub end
{
	my ($node, $stage, $what, %params) = @_;
	my ($commit, $roll_back) = $params{turned} ? qw(r c) : qw(c r);
	$node->safe_psql('postgres', "ROLLBACK PREPARED '$roll_back$stage'");
	$params{between}->() if $params{between};
	$node->safe_psql('postgres', "COMMIT PREPARED '$commit$stage'");
	ended($node, $stage, $what, %params);
	return;
}

sub ended
{
	my ($node, $stage, $what, %params) = @_;
	my ($commit, $roll_back) = $params{turned} ? qw(r c) : qw(c r);
	my $after = agree($node, "$commit$stage", $what);
	like($after, qr/x_create_${commit}${stage}_new/, "$what: what was made is there");
	unlike($after, qr/x_drop_$commit$stage\b/, "$what: what was dropped is gone");
	my $before = agree($node, "$roll_back$stage", $what);
	unlike($before, qr/_new/, "$what: what was rolled back is not there");
	like($before, qr/x_drop_$roll_back$stage\b/, "$what: what was to be dropped is there");
	return;
}

# The storages that the engine has are those of the catalog: nothing of what is gone is left.
sub settled
{
	my ($node, $what) = @_;
	ok($node->poll_query_until('postgres', "SELECT (SELECT count(*) FROM mot.table_usage()) = (SELECT count(*) FROM pg_class JOIN pg_am a ON a.oid = relam WHERE amname = 'mot' AND relkind = 'r')
		AND (SELECT count(*) FROM mot.index_usage()) = (SELECT count(*) FROM pg_index JOIN pg_class t ON t.oid = indrelid JOIN pg_am a ON a.oid = t.relam WHERE amname = 'mot' AND relkind = 'r')"),
		"$what: nothing is left of what is gone");
	return;
}

# In one life of the server.
my $one = stage($primary);
$primary->safe_psql('postgres', 'CHECKPOINT');
held($primary, 'running', $one);
wait_replayed($primary, $standby);
end($primary, $one, 'running');
wait_replayed($primary, $standby);
ended($standby, $one, 'on the standby');
settled($primary, 'running');

# Clean restarts, and warm ones. A table whose name is used again meanwhile.
for my $warm (qw(off on))
{
	my $what = $warm eq 'on' ? 'warm restart' : 'restart';
	$primary->append_conf('postgresql.conf', "mot.warm_restart = $warm\n");
	$primary->restart;
	my @stages = (stage($primary), stage($primary));
	$primary->restart;
	held($primary, $what, @stages);
	$primary->restart;
	held($primary, "second $what", @stages);
	end($primary, $stages[1], $what, turned => 1);
	end($primary, $stages[0], $what, between => sub { $primary->restart });
	settled($primary, $what);
	$primary->restart;
	ended($primary, $stages[0], "$what behind the end");
	ended($primary, $stages[1], "$what behind the end", turned => 1);
	settled($primary, "$what behind the end");
}
$primary->append_conf('postgresql.conf', "mot.warm_restart = off\n");

# Crashes: prepared in the WAL, and from a checkpoint; ended before the crash, and behind it.
for my $checkpoint (0, 1)
{
	my $what = $checkpoint ? 'crash after a checkpoint' : 'crash';
	my @stages = (stage($primary), stage($primary));
	$primary->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
	crash($primary);
	held($primary, $what, @stages);
	end($primary, $stages[1], $what, between => sub { $primary->safe_psql('postgres', 'CHECKPOINT') if $checkpoint; crash($primary) });
	crash($primary);
	ended($primary, $stages[1], "$what behind the end");
	held($primary, "second $what", $stages[0]);
	end($primary, $stages[0], $what, turned => 1);
	settled($primary, $what);
	crash($primary);
	ended($primary, $stages[0], "second $what behind the end", turned => 1);
	settled($primary, "second $what");
}

# Memory of what was dropped, or rolled back, comes back, whoever prepared it.
sub used { return $primary->safe_psql('postgres', 'SELECT arena_bytes_used FROM mot.stat_memory') }
my $bytes = 20 << 20;
my $before = used();
my $big = "CREATE TABLE big (id int PRIMARY KEY, filler text) USING mot; INSERT INTO big SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i;";
$primary->safe_psql('postgres', "BEGIN; $big PREPARE TRANSACTION 'big'");
cmp_ok(used(), '>', $before + $bytes, 'a prepared table takes memory');
$primary->safe_psql('postgres', "ROLLBACK PREPARED 'big'");
my $is_less = "SELECT arena_bytes_used < $before + $bytes / 2 FROM mot.stat_memory";
ok($primary->poll_query_until('postgres', $is_less), 'and gives it back when it is rolled back');
$primary->safe_psql('postgres', $big);
$primary->safe_psql('postgres', "BEGIN; DROP TABLE big; PREPARE TRANSACTION 'big'");
crash($primary);
cmp_ok(used(), '>', $before + $bytes, 'a table that is to be dropped keeps its memory');
$primary->safe_psql('postgres', "COMMIT PREPARED 'big'");
ok($primary->poll_query_until('postgres', $is_less), 'and gives it back when it is dropped');

# 100,000 rows locked by foreign keys.
my $parents = 100_000;
$primary->safe_psql('postgres', "CREATE TABLE parent (id int PRIMARY KEY) USING mot; INSERT INTO parent SELECT generate_series(1, $parents);
	CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent) USING mot;");

sub prepare_locks
{
	my ($node, $name) = @_;
	$node->safe_psql('postgres', "TRUNCATE child; BEGIN; INSERT INTO child SELECT i, i FROM generate_series(1, $parents) i; SELECT FROM parent WHERE id = 7 FOR UPDATE; PREPARE TRANSACTION '$name'");
	return;
}

sub locked
{
	my ($node, $what) = @_;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT FROM parent FOR UPDATE SKIP LOCKED) free'), 0, "$what: every parent is locked");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT FROM parent FOR NO KEY UPDATE SKIP LOCKED) free'), $parents - 1, "$what: but weakly");
	return;
}

sub unlocked
{
	my ($node, $what) = @_;
	is($node->safe_psql('postgres', "SET statement_timeout = '60s'; SELECT count(*) FROM (SELECT FROM parent FOR UPDATE NOWAIT) free"), $parents, "$what: no parent is locked");
	$node->safe_psql('postgres', "SELECT mot.check('parent'), mot.check('child')");
	return;
}

for my $checkpoint (0, 1, 2)
{
	my $what = ('locks in the log', 'locks in a checkpoint', 'locks over a restart')[$checkpoint];
	prepare_locks($primary, 'locks');
	locked($primary, "$what, before");
	$primary->safe_psql('postgres', 'CHECKPOINT') if $checkpoint == 1;
	$checkpoint == 2 ? $primary->restart : crash($primary);
	locked($primary, $what);
	crash($primary);
	locked($primary, "$what, again");
	$primary->safe_psql('postgres', "COMMIT PREPARED 'locks'");
	unlocked($primary, $what);
	my (undef, undef, $error) = $primary->psql('postgres', 'DELETE FROM parent WHERE id = 77777');
	like($error, qr/violates foreign key constraint/, "$what: the children are there");
	crash($primary);
	unlocked($primary, "$what, ended");
}

# To a point in time between PREPARE and the end, and ended in the other way there.
my $pitr = stage($primary);
prepare_locks($primary, 'locks');
my $target = $primary->safe_psql('postgres', "SELECT pg_create_restore_point('undecided')");
$primary->backup('undecided');
end($primary, $pitr, 'before the recovery to a point in time');
$primary->safe_psql('postgres', "ROLLBACK PREPARED 'locks'; SELECT pg_switch_wal()");
my $back = PostgreSQL::Test::Cluster->new('back');
$back->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
$back->append_conf('postgresql.conf', "recovery_target_name = 'undecided'\nrecovery_target_action = 'promote'\n");
$back->start;
$back->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'the recovery does not end';
held($back, 'point in time', $pitr);
locked($back, 'point in time');
end($back, $pitr, 'point in time', turned => 1);
$back->safe_psql('postgres', "COMMIT PREPARED 'locks'");
unlocked($back, 'point in time');
settled($back, 'point in time');
crash($back);
ended($back, $pitr, 'point in time, and lost', turned => 1);
$back->stop;

# A standby that is killed with such ones open, one made by a base backup with them, and promotion.
my @stages = (stage($primary), stage($primary));
prepare_locks($primary, 'locks');
wait_replayed($primary, $standby);
crash($standby);
$primary->backup('with_prepared');
my $other = new_standby('other', $primary, 'with_prepared');
end($primary, $stages[1], 'before the promotion');
wait_replayed($primary, $_) for $standby, $other;
ended($_, $stages[1], 'on ' . $_->name) for $standby, $other;
$primary->kill9;
wait_gone($primary);
for my $node ($standby, $other)
{
	my $what = $node->name . ' promoted';
	promote($node);
	held($node, $what, $stages[0]);
	locked($node, $what);
	if ($node == $standby)
	{
		crash($node);
		held($node, "$what and lost", $stages[0]);
		locked($node, "$what and lost");
	}
	end($node, $stages[0], $what);
	ended($node, $stages[1], $what);
	$node->safe_psql('postgres', "COMMIT PREPARED 'locks'");
	unlocked($node, $what);
	settled($node, $what);
	crash($node);
	ended($node, $stages[0], "$what, ended and lost");
	unlocked($node, "$what, ended and lost");
	settled($node, "$what, ended and lost");
}

no_crash($primary, $standby, $other);
done_testing();
