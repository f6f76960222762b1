# Tables come, go and change at random, by sessions side by side: rewrites, SET LOGGED and UNLOGGED,
# SET ACCESS METHOD, TRUNCATE, indexes, savepoints, prepared transactions that are ended in another
# order. Each statement does the same to a heap table in the same transaction. Servers are lost,
# stopped, backed up and promoted meanwhile. MOT_TEST_SEED=n repeats the choices.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use constant TABLES   => 6;
use constant SESSIONS => 3;

my $seed = $ENV{MOT_TEST_SEED} // time() % 1_000_000;
note("MOT_TEST_SEED=$seed");
srand($seed);
sub below { return int(rand($_[0])) }
sub any { return $_[ below(scalar @_) ] }

# Some servers write the least log, and have no standby.
my $is_minimal = below(4) == 0;
my $primary = new_primary('primary', conf => "lock_timeout = '200ms'\njit = off\nmot.warm_restart = " . any(qw(on off)) . "\n"
	  . ($is_minimal ? "wal_level = minimal\nmax_wal_senders = 0\n" : ''));
$primary->safe_psql('postgres', q(
-- A class whose order only its own function knows.
CREATE FUNCTION own_cmp(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT btint4cmp($1, $2)';
CREATE OPERATOR CLASS own_ops FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 own_cmp(int, int);
-- Does something to the heap table and to the memory-optimized one of a number.
CREATE FUNCTION act(kind text, i int, r int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE method text; t text; work text;
BEGIN
  -- Whoever comes next finds what the one before has left of both.
  PERFORM pg_advisory_xact_lock(i);
  IF kind LIKE 'undone %' THEN
    BEGIN
      PERFORM act(substr(kind, 8), i, r);
      RAISE EXCEPTION 'undone';
    EXCEPTION WHEN raise_exception THEN
    END;
    RETURN;
  END IF;
  FOREACH method IN ARRAY ARRAY['heap', 'mot'] LOOP
    t := method || '_' || i;
    IF kind IN ('create', 'create unlogged') <> (to_regclass(t) IS NULL) THEN
      CONTINUE;
    END IF;
    work := CASE kind
      WHEN 'create' THEN 'CREATE TABLE %1$s (id int PRIMARY KEY, k int, v text) USING %3$s; CREATE INDEX %1$s_k ON %1$s (k)'
      WHEN 'create unlogged' THEN 'CREATE UNLOGGED TABLE %1$s (id int PRIMARY KEY, k int, v text) USING %3$s; CREATE INDEX %1$s_k ON %1$s (k)'
      WHEN 'drop' THEN 'DROP TABLE %1$s'
      WHEN 'again' THEN 'DROP TABLE %1$s; CREATE TABLE %1$s USING %3$s AS SELECT g AS id, g %% 5 AS k, repeat(''y'', g %% 90) AS v FROM generate_series(1, 300 + %2$s) g;
        ALTER TABLE %1$s ADD PRIMARY KEY (id); CREATE INDEX %1$s_k ON %1$s (k)'
      WHEN 'insert' THEN 'INSERT INTO %1$s (id, k, v) SELECT g, g %% 7, repeat(''x'', g %% 50) FROM generate_series(20 * %2$s, 20 * %2$s + 40) g
        ON CONFLICT (id) DO UPDATE SET k = %1$s.k + 1'
      WHEN 'load' THEN 'INSERT INTO %1$s (id, k, v) SELECT g, g %% 7, ''loaded '' || g FROM generate_series(10000 + 1000 * %2$s, 10900 + 1000 * %2$s) g ON CONFLICT (id) DO NOTHING'
      WHEN 'update' THEN 'UPDATE %1$s SET v = v || ''.'' WHERE id %% 7 = %2$s %% 7'
      WHEN 'move' THEN 'UPDATE %1$s SET k = k + %2$s WHERE id %% 5 = %2$s %% 5'
      WHEN 'turn' THEN 'UPDATE %1$s SET id = -id WHERE id %% 11 = %2$s %% 11'
      WHEN 'delete' THEN 'DELETE FROM %1$s WHERE id %% 9 = %2$s %% 9'
      WHEN 'lock' THEN 'DO $do$ BEGIN PERFORM 1 FROM %1$s WHERE id %% 3 = %2$s %% 3 FOR KEY SHARE; PERFORM 1 FROM %1$s WHERE id %% 13 = %2$s FOR UPDATE; END $do$'
      WHEN 'truncate' THEN 'TRUNCATE %1$s'
      WHEN 'logged' THEN 'ALTER TABLE %1$s SET LOGGED'
      WHEN 'unlogged' THEN 'ALTER TABLE %1$s SET UNLOGGED'
      WHEN 'type' THEN 'ALTER TABLE %1$s ALTER k TYPE int USING k + 1'
      WHEN 'add' THEN 'ALTER TABLE %1$s ADD COLUMN IF NOT EXISTS c int DEFAULT 5'
      WHEN 'remove' THEN 'ALTER TABLE %1$s DROP COLUMN IF EXISTS c'
      WHEN 'cluster' THEN 'CLUSTER %1$s USING %1$s_pkey'
      WHEN 'reindex' THEN 'REINDEX TABLE %1$s'
      WHEN 'index' THEN 'CREATE INDEX IF NOT EXISTS %1$s_k ON %1$s (k)'
      WHEN 'no index' THEN 'DROP INDEX IF EXISTS %1$s_k'
      WHEN 'partial' THEN 'DROP INDEX IF EXISTS %1$s_k; CREATE INDEX %1$s_k ON %1$s ((k + 1)) WHERE id > 0'
      WHEN 'labels' THEN 'DROP INDEX IF EXISTS %1$s_k; CREATE INDEX %1$s_k ON %1$s (k own_ops DESC, id)'
      WHEN 'heap' THEN 'ALTER TABLE mot_%4$s SET ACCESS METHOD heap'
      WHEN 'mot' THEN 'ALTER TABLE mot_%4$s SET ACCESS METHOD mot'
      END;
    IF work LIKE '%mot\_%' AND method = 'heap' THEN
      CONTINUE;
    END IF;
    EXECUTE format(work, t, r, method, i);
  END LOOP;
END $$;

-- What is not alike; NULL if all is. Tables that somebody holds are passed over.
CREATE FUNCTION unlike() RETURNS text LANGUAGE plpgsql AS $$
DECLARE heap text; mot text; is_mot bool; difference text := ''; found record;
BEGIN
  FOR i IN 1 .. 6 LOOP
    heap := 'heap_' || i;
    mot := 'mot_' || i;
    BEGIN
      IF (to_regclass(heap) IS NULL) <> (to_regclass(mot) IS NULL) THEN
        difference := difference || format(E'%s: there is only %s\n', i, coalesce(to_regclass(heap), to_regclass(mot)));
      END IF;
      IF to_regclass(heap) IS NULL OR to_regclass(mot) IS NULL THEN
        CONTINUE;
      END IF;
      SELECT h.relpersistence AS one, m.relpersistence AS other, m.relam = (SELECT oid FROM pg_am WHERE amname = 'mot') AS is_mot
        INTO found FROM pg_class h, pg_class m WHERE h.oid = to_regclass(heap) AND m.oid = to_regclass(mot);
      is_mot := found.is_mot;
      IF found.one <> found.other THEN
        difference := difference || format(E'%s: persistence %s and %s\n', i, found.one, found.other);
      END IF;
      CONTINUE WHEN found.one = 'u' AND pg_is_in_recovery();
      PERFORM set_config('enable_seqscan', 'on', true);
      EXECUTE format('SELECT (SELECT string_agg(t::text, E''\n'' ORDER BY id) FROM %s t) AS one, (SELECT string_agg(t::text, E''\n'' ORDER BY id) FROM %s t) AS other,
        (SELECT count(*) FROM %s) AS ones, (SELECT count(*) FROM %s) AS others', heap, mot, heap, mot) INTO found;
      IF found.one IS DISTINCT FROM found.other THEN
        difference := difference || format(E'%s: %s and %s rows\n', i, found.ones, found.others);
      END IF;
      PERFORM set_config('enable_seqscan', 'off', true);
      EXECUTE format('SELECT (SELECT count(*) FROM %s WHERE id > -1000000) AS by_id, (SELECT count(*) FROM %s WHERE k > -1000000) AS by_k, (SELECT count(*) FROM %s WHERE k + 1 > -1000000 AND id > 0) AS by_sum,
        (SELECT count(*) FROM %s WHERE id > 0) AS positive', mot, mot, mot, heap) INTO found;
      IF found.by_id IS DISTINCT FROM found.by_k OR found.by_sum IS DISTINCT FROM found.positive THEN
        difference := difference || format(E'%s: by indexes %s\n', i, found);
      END IF;
      IF is_mot AND NOT pg_is_in_recovery() THEN
        PERFORM mot.check(mot::regclass);
      END IF;
    EXCEPTION WHEN lock_not_available THEN
    END;
  END LOOP;
  RETURN nullif(difference, '');
END $$;));

my @kinds = (
	('create') x 4, ('create unlogged') x 3, 'drop', 'again', ('insert') x 6, ('load') x 2, ('update') x 4, ('move') x 3, ('turn') x 3, ('delete') x 3, ('lock') x 3,
	('truncate') x 3, ('logged') x 3, ('unlogged') x 3, 'type', 'add', 'remove', ('cluster') x 2, ('reindex') x 2, 'index', 'no index', 'partial', ('labels') x 3, 'heap', ('mot') x 2);
my $gid = 0;
my ($standby, $second);

sub act
{
	my $kind = any(@kinds);
	$kind = "undone $kind" if below(6) == 0;
	return sprintf("SELECT act('%s', %d, %d);\n", $kind, 1 + below(TABLES), below(20));
}

sub transaction
{
	return any('VACUUM FULL', 'VACUUM', 'REINDEX TABLE CONCURRENTLY', 'VACUUM (FREEZE)') . ' mot_' . (1 + below(TABLES)) . ";\n" if below(12) == 0;
	my ($sql, @open) = ("BEGIN;\n");
	for (1 .. 1 + below(6))
	{
		my $choice = below(8);
		if ($choice == 0)
		{
			push @open, 's' . @open;
			$sql .= "SAVEPOINT $open[-1];\n";
		}
		elsif ($choice == 1 && @open)
		{
			$sql .= any("RELEASE $open[-1];\n", "ROLLBACK TO $open[-1]; RELEASE $open[-1];\n");
			pop @open;
		}
		else
		{
			$sql .= act();
		}
	}
	my $end = below(10);
	$gid++;
	return $sql . ($end < 6 ? 'COMMIT' : $end < 8 ? 'ROLLBACK' : "PREPARE TRANSACTION 'g$gid'") . ";\n";
}

# What may go wrong: somebody else holds something, or the server is lost.
my $allowed = qr/lock timeout|does not exist|duplicate key|deadlock detected|current transaction is aborted|maximum number of prepared|terminating|server closed|connection to server|could not obtain|
	|no connection to the server|already exists|could not access status|shutting down|starting up|in recovery mode|the database system/x;

sub unexpected
{
	my ($output) = @_;
	return join "\n", grep { /ERROR|FATAL|PANIC/ && !/$allowed/ } split /\n/, $output;
}

sub begin_sessions
{
	my ($node) = @_;
	my @sessions;
	for my $number (1 .. SESSIONS)
	{
		my $script = "$PostgreSQL::Test::Utils::tmp_check/random_$number.sql";
		unlink $script;
		append_to_file($script, join('', map { transaction() } 1 .. 8));
		my %session = (output => '');
		$session{run} = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres'), '-f', $script ], '<', \undef, '>', \$session{output}, '2>&1');
		push @sessions, \%session;
	}
	return @sessions;
}

sub end_prepared
{
	my ($node, $share) = @_;
	my @left = split /\n/, $node->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
	for my $one (sort { rand() <=> 0.5 } @left)
	{
		$node->safe_psql('postgres', any('COMMIT', 'COMMIT', 'ROLLBACK') . " PREPARED '$one'") if rand() < $share;
	}
	return;
}

sub alike
{
	my ($node, $what, $database) = @_;
	my ($code, $out, $error) = $node->psql($database // 'postgres', 'SELECT unlike()');
	my $ok = is("$code$out$error", '0', $node->name . ": tables are alike $what");
	die "MOT_TEST_SEED=$seed" unless $ok;
	return;
}

# The whole database in a copy, which outlives a crash, and is dropped.
sub copy_database
{
	my ($node) = @_;
	end_prepared($node, 1);
	# With the least log, plain PostgreSQL 15 loses the init forks of a copy by blocks in a crash: the
	# copy's unlogged heap tables have damaged indexes then.
	my $strategy = $is_minimal ? 'file_copy' : any(qw(wal_log file_copy));
	$node->safe_psql('template1', "CREATE DATABASE copied TEMPLATE postgres STRATEGY = $strategy");
	alike($node, "in a copy by $strategy", 'copied');
	if (defined $standby)
	{
		wait_replayed($node, $standby);
		alike($standby, "in a copy by $strategy", 'copied');
	}
	crash($node) if below(2);
	alike($node, 'in the copy, later', 'copied');
	$node->safe_psql('postgres', 'DROP DATABASE copied');
	return;
}

if (!$is_minimal)
{
	$primary->backup('base');
	$standby = new_standby('standby', $primary, 'base', conf => "hot_standby_feedback = on\n");
}
my $rounds = $ENV{MOT_TEST_ROUNDS} // pick(8, 60);
for my $round (1 .. $rounds)
{
	my $event = any('kill', 'kill', 'immediate', 'fast', 'fast', 'checkpoint', 'checkpoint and kill', 'backend', 'standby', 'lost standby', 'backup', 'database', 'nothing');
	my @sessions = begin_sessions($primary);
	my $while = below(2);
	if ($while)
	{
		usleep(below(1_500_000));
	}
	else
	{
		$_->{run}->finish for @sessions;
	}
	note("round $round: $event" . ($while ? ' beside sessions' : ''));
	$primary->safe_psql('postgres', 'CHECKPOINT') if $event =~ /checkpoint/;
	if ($event =~ /kill/)
	{
		crash($primary);
	}
	elsif ($event eq 'immediate' || $event eq 'fast')
	{
		$primary->stop($event);
		$primary->start;
	}
	elsif ($event eq 'backend')
	{
		my $victim = $primary->background_psql('postgres', on_error_stop => 0);
		kill_backend($victim->query_safe('SELECT pg_backend_pid()'));
		eval { $victim->quit };
		$primary->poll_query_until('postgres', 'SELECT true') or die 'the server is not back';
	}
	elsif ($event eq 'standby' && defined $standby)
	{
		$standby->restart;
	}
	elsif ($event eq 'lost standby' && defined $standby)
	{
		crash($standby);
	}
	elsif ($event eq 'backup' && defined $standby && !defined $second)
	{
		$primary->backup('second');
		$second = new_standby('second', $primary, 'second');
	}
	$_->{run}->finish for @sessions;
	copy_database($primary) if $event eq 'database';
	is(unexpected(join '', map { $_->{output} } @sessions), '', "round $round: no unexpected error");
	$primary->poll_query_until('postgres', q(SELECT state = 'ready' FROM mot.stat_recovery)) or die 'not loaded';
	alike($primary, "in round $round, behind $event");
	end_prepared($primary, rand());
	alike($primary, "in round $round, with prepared ones ended");
	for my $node (grep { defined } $standby, $second)
	{
		wait_replayed($primary, $node);
		alike($node, "in round $round");
	}
}

# One more stage, which leaves prepared transactions to the promoted standby.
my @sessions = begin_sessions($primary);
$_->{run}->finish for @sessions;
my $last = $primary;
if (defined $standby)
{
	wait_replayed($primary, $standby);
	$primary->stop('immediate');
	promote($standby);
	$last = $standby;
}
alike($last, 'at the last');
end_prepared($last, 0.5);
alike($last, 'at the last, with some prepared ones ended');
@sessions = begin_sessions($last);
$_->{run}->finish for @sessions;
is(unexpected(join '', map { $_->{output} } @sessions), '', 'at the last: no unexpected error');
crash($last);
alike($last, 'lost');
end_prepared($last, 1);
alike($last, 'with all prepared ones ended');
my $left = q(SELECT (SELECT count(*) FROM mot.table_usage()) = (SELECT count(*) FROM pg_class WHERE relam = (SELECT oid FROM pg_am WHERE amname = 'mot') AND relkind = 'r'));
ok($last->poll_query_until('postgres', $left), 'no storage is left of what is gone');
$last->restart;
alike($last, 'after a clean restart');
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|panicked/, $_->name . ': no crash in the log') for grep { defined } $primary, $standby, $second;

done_testing();
