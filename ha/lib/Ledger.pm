# What every scenario needs: servers with mot, a schema whose rows exist twice (once in a heap
# table, once in a memory-optimized one, written by the same transactions), a load on it, and the
# comparisons. README.md says what is compared and why.
package Ledger;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(
  new_primary new_standby unpack_backup
  is_full pick start_load stop_load start_readers stop_readers start_checkpoints stop_checkpoints
  use_up_ids cut_commit_log
  promote crash kill_backend wait_gone process redo_of agrees sound holds_all digest same_rows wait_replayed wait_archived caught_up no_crash
);

my $here = abs_path(dirname(__FILE__) . '/..');

# Rows of each account table, and the sum of all balances, which no transaction changes.
use constant ACCOUNTS => 400;
use constant TOTAL    => 2 * ACCOUNTS * 1000;
our @TABLES = qw(account_mot twin_mot);

# The long form of the suite (MOT_HA=full) repeats more and kills more often.
sub is_full { return ($ENV{MOT_HA} // 'short') eq 'full' }
sub pick { my ($short, $full) = @_; return is_full() ? $full : $short }

my $settings = q(
shared_preload_libraries = 'mot'
mot.max_memory = '192MB'
max_connections = 40
max_prepared_transactions = 10
shared_buffers = 8MB
max_wal_size = 64MB
checkpoint_timeout = 1h
log_statement = none
log_checkpoints = on
autovacuum_naptime = 1s
wal_keep_size = 256MB
restart_after_crash = on
);

# A primary that may be streamed from and archives, with the schema and its first rows. `conf` adds
# settings; `next_xid`: it begins with that; `before`: name of a backup that is taken before it has
# the library.
sub new_primary
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(
		allows_streaming => 1,
		has_archiving    => $params{archiving} // 0,
		extra            => [ '-E', 'UTF8', '--locale=C.UTF-8' ]);
	if (defined $params{before})
	{
		$node->start;
		$node->backup($params{before});
		$node->stop;
	}
	$node->append_conf('postgresql.conf', $settings . ($params{conf} // ''));
	begin_at($node, $params{next_xid}) if defined $params{next_xid};
	$node->start;
	make_schema($node);
	return $node;
}

# Lets a cluster that was never started begin with a transaction id. Its file of the commit log gets
# its whole length.
sub begin_at
{
	my ($node, $xid) = @_;
	my @oldest;
	if ($xid >= 1 << 31)
	{
		# What initdb wrote would lie in the future, and numbers would have run out.
		my ($input, $output) = ("VACUUM (FREEZE)\n", '');
		IPC::Run::run([ $node->installed_command('postgres'), '--single', '-c', 'shared_preload_libraries=', '-D', $node->data_dir, 'postgres' ],
			'<', \$input, '>', \$output, '2>&1') or die $output;
		@oldest = ('-u', $xid);
	}
	system_or_bail($node->installed_command('pg_resetwal'), '-x', $xid, @oldest, $node->data_dir);
	my $file = $node->data_dir . sprintf('/pg_xact/%04X', $xid >> 20);
	append_to_file($file, '');
	truncate($file, 262144) or die;
	return;
}

# Takes so many transaction ids.
sub use_up_ids
{
	my ($node, $count) = @_;
	$node->safe_psql('postgres', "DO \$\$ BEGIN FOR i IN 1..$count LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END \$\$");
	return;
}

# Has VACUUM cut the first file of the commit log off, with ids used up to behind its end. Nothing
# is cut off before the reclaimer has judged what has ended, which is a matter of moments.
sub cut_commit_log
{
	my ($node, @databases) = @_;
	my $file = $node->data_dir . '/pg_xact/0000';
	use_up_ids($node, 600);
	$node->safe_psql('postgres', q(UPDATE pg_database SET datallowconn = true WHERE datname = 'template0'));
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$node->safe_psql($_, 'VACUUM (FREEZE)') for qw(postgres template1 template0), @databases;
		last unless -e $file;
		usleep(100_000);
	}
	ok(!-e $file, $node->name . ': the commit log is cut off');
	return;
}

sub make_schema
{
	my ($node) = @_;
	my $accounts = ACCOUNTS;
	$node->safe_psql('postgres', qq(
CREATE EXTENSION mot;
CREATE TABLE account_heap (id int PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE account_mot (id int PRIMARY KEY, balance bigint NOT NULL) USING mot;
CREATE TABLE twin_heap (id int PRIMARY KEY, k int NOT NULL, changes int NOT NULL, note text);
CREATE TABLE twin_mot (id int PRIMARY KEY, k int NOT NULL, changes int NOT NULL, note text) USING mot;
CREATE INDEX ON twin_heap (k);
CREATE INDEX ON twin_mot (k);
INSERT INTO account_heap SELECT i, 1000 FROM generate_series(1, $accounts) i;
INSERT INTO account_mot SELECT i, 1000 FROM generate_series(1, $accounts) i;
INSERT INTO twin_heap SELECT i, i % 50, 0, 'row ' || i FROM generate_series(1, 1000) i;
INSERT INTO twin_mot SELECT * FROM twin_heap;
-- Rows that one of the twins has and the other has not.
CREATE VIEW differences AS
  SELECT 'heap' AS only_in, h.* FROM (SELECT * FROM twin_heap EXCEPT SELECT * FROM twin_mot) h
  UNION ALL
  SELECT 'mot', m.* FROM (SELECT * FROM twin_mot EXCEPT SELECT * FROM twin_heap) m;
-- What one snapshot must always find: t.
CREATE VIEW consistent AS
  SELECT (SELECT sum(balance) FROM account_heap) + (SELECT sum(balance) FROM account_mot) = @{[TOTAL]}
     AND (SELECT count(*) FROM twin_heap) = (SELECT count(*) FROM twin_mot)
     AND NOT EXISTS (SELECT FROM differences) AS is_consistent;
-- Every row of every table.
CREATE VIEW digest AS
  SELECT (SELECT md5(string_agg(t::text, E'\\n' ORDER BY id)) FROM account_heap t) AS account_heap,
         (SELECT md5(string_agg(t::text, E'\\n' ORDER BY id)) FROM account_mot t) AS account_mot,
         (SELECT md5(string_agg(t::text, E'\\n' ORDER BY id)) FROM twin_heap t) AS twin_heap,
         (SELECT md5(string_agg(t::text, E'\\n' ORDER BY id)) FROM twin_mot t) AS twin_mot;
-- Raises when a snapshot is not consistent: for readers that run beside a load.
CREATE FUNCTION look() RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE found record;
BEGIN
  SELECT (SELECT sum(balance) FROM account_heap) AS heap, (SELECT sum(balance) FROM account_mot) AS mot,
         (SELECT string_agg(d::text, ' ') FROM differences d) AS differences INTO found;
  IF found.heap + found.mot <> @{[TOTAL]} OR found.differences IS NOT NULL THEN
    RAISE EXCEPTION 'INCONSISTENT: heap % + mot %, %', found.heap, found.mot, found.differences;
  END IF;
END \$\$;
));
	return;
}

# Standbys replay with threads: the first, the third and so on hand every record over to them, the
# others only when they are behind.
my $standbys = 0;

# A standby of `$upstream` from its backup, started. `is_plain`: the backup is of a server without
# the library and its settings.
sub new_standby
{
	my ($name, $upstream, $backup, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init_from_backup($upstream, $backup, has_streaming => 1);
	$node->append_conf('postgresql.conf', $settings) if $params{is_plain};
	my $hand_over = $standbys++ % 2 == 0 ? 'always' : 'behind';
	# PostgreSQL's own default cancels readers of a standby that is 30 s behind, which a slow machine
	# is soon: pruned heap pages wait for them.
	$node->append_conf('postgresql.conf', "mot.replay_workers = 3\nmot.replay_hand_over = $hand_over\nmax_standby_streaming_delay = -1\n");
	$node->append_conf('postgresql.conf', $params{conf}) if defined $params{conf};
	$node->start;
	return $node;
}

# Makes a plain directory of a backup in tar format (with or without a pg_wal.tar).
sub unpack_backup
{
	my ($node, $tar, $plain) = @_;
	my ($from, $to) = map { $node->backup_dir . "/$_" } $tar, $plain;
	mkdir $to;
	chmod 0700, $to;
	system_or_bail('tar', 'xf', "$from/base.tar", '-C', $to);
	system_or_bail('tar', 'xf', "$from/pg_wal.tar", '-C', "$to/pg_wal") if -e "$from/pg_wal.tar";
	system_or_bail('cp', "$from/backup_manifest", $to);
	return;
}

# Begins writing; the scripts of load/ say what. `may_fail`: the server will be stopped under it.
my $loads = 0;

sub start_load
{
	my ($node, %params) = @_;
	$loads++;
	my %load = (output => '', may_fail => $params{may_fail}, name => $node->name, node => $node, application => "load $loads");
	my @scripts = map { ('-f', "$here/load/$_") } qw(transfer.sql@4 twins.sql@4 remove.sql@1 savepoint.sql@1);
	$load{run} = IPC::Run::start(
		[
			$node->installed_command('pgbench'), '-n', '-M', 'prepared', '-c', $params{clients} // 3, '-T', 3600, @scripts,
			$node->connstr('postgres') . " application_name='$load{application}'"
		],
		'<', \undef, '>', \$load{output}, '2>&1');
	# Under way, so that what follows happens beside it.
	my $before = written($node);
	usleep(20_000) until written($node) > $before + 50 || !$load{run}->pumpable;
	return \%load;
}

# A number that grows with every transaction that writes.
sub written
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())');
}

sub stop_load
{
	my ($load) = @_;
	$load->{run}->signal('TERM') if $load->{run}->pumpable;
	$load->{run}->finish;
	return if $load->{may_fail};
	# A commit that was asked for is carried out though nobody waits for it.
	$load->{node}->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = '$load->{application}'")
	  or die 'the load goes on';
	unlike($load->{output}, qr/ERROR|FATAL|PANIC|aborted|terminated/, "$load->{name}: no transaction of the load failed")
	  or diag($load->{output});
	return;
}

# Begins reading on a standby: every snapshot must be consistent.
sub start_readers
{
	my ($node, %params) = @_;
	my %readers = (output => '', name => $node->name, may_fail => $params{may_fail});
	$readers{run} = IPC::Run::start(
		[
			$node->installed_command('pgbench'), '-n', '-c', 2, '-T', 3600,
			'--progress=1', '-f', "$here/load/look.sql\@2", '-f', "$here/load/look_twice.sql\@1",
			'-f', "$here/load/look_parallel.sql\@3", $node->connstr('postgres')
		],
		'<', \undef, '>', \$readers{output}, '2>&1');
	return \%readers;
}

# Ends them when they have looked often enough.
sub stop_readers
{
	my ($readers) = @_;
	# A progress line that tells of transactions: they have looked.
	until ($readers->{may_fail} || $readers->{output} =~ /progress: \S+ s, [1-9]/ || !$readers->{run}->pumpable)
	{
		$readers->{run}->pump_nb;
		usleep(20_000);
	}
	$readers->{run}->signal('TERM') if $readers->{run}->pumpable;
	$readers->{run}->finish;
	unlike($readers->{output}, qr/INCONSISTENT/, "$readers->{name}: every snapshot was consistent")
	  or diag($readers->{output});
	unlike($readers->{output}, qr/ERROR|FATAL|aborted/, "$readers->{name}: no reader failed") or diag($readers->{output})
	  unless $readers->{may_fail};
	return;
}

# A checkpoint every few hundredths of a second: generations of files come and go.
sub start_checkpoints
{
	my ($node) = @_;
	my %checkpoints = (input => "CHECKPOINT \\watch 0.03\n", output => '');
	$checkpoints{run} = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres') ],
		'<', \$checkpoints{input}, '>', \$checkpoints{output}, '2>&1');
	# They are given to the server by the harness.
	$checkpoints{run}->pump until $checkpoints{input} eq '';
	return \%checkpoints;
}

sub stop_checkpoints
{
	my ($checkpoints) = @_;
	$checkpoints->{run}->signal('TERM') if $checkpoints->{run}->pumpable;
	$checkpoints->{run}->finish;
	return;
}

sub promote
{
	my ($node) = @_;
	$node->promote;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die $node->name . ' is not promoted';
	return;
}

# Loses the server and starts it again.
sub crash
{
	my ($node) = @_;
	$node->kill9;
	wait_gone($node);
	$node->start;
	return;
}

# Kills a session's process, and waits until the postmaster knows: from then on nobody is let in
# before the server has recovered.
sub kill_backend
{
	my ($pid) = @_;
	kill 'KILL', $pid;
	for (1 .. 1500)
	{
		return unless -d "/proc/$pid";
		usleep(20_000);
	}
	die "process $pid is left";
}

# Waits until no process of a killed server is left: they notice by themselves that their postmaster
# is gone.
sub wait_gone
{
	my ($node) = @_;
	my $at = abs_path($node->data_dir);
	my ($postmaster) = slurp_file("$at/postmaster.pid") =~ /^(\d+)/;
	for (1 .. 1500)
	{
		# The postmaster stays until its parent has noticed, too, and its number counts as long as it
		# does.
		return unless -d "/proc/$postmaster" || grep { (readlink("$_/cwd") // '') eq $at } glob('/proc/[0-9]*');
		usleep(20_000);
	}
	die 'processes of ' . $node->name . ' are left';
}

# The process number of the one process of a server whose title begins with `$title`.
sub process
{
	my ($node, $title) = @_;
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my $name = $node->name;
	my @found;
	for my $pid (split ' ', slurp_file("/proc/$postmaster/task/$postmaster/children"))
	{
		# It may be gone meanwhile.
		open(my $in, '<', "/proc/$pid/cmdline") or next;
		push @found, $pid if (<$in> // '') =~ /^postgres: (\Q$name\E: )?\Q$title\E/;
	}
	die "not one process $title: @found" if @found != 1;
	return $found[0];
}

# Heap and memory-optimized halves agree on this server.
sub agrees
{
	my ($node, $what) = @_;
	my $is = $node->safe_psql('postgres', 'SELECT is_consistent FROM consistent');
	my $ok = is($is, 't', $node->name . ": heap and MOT rows agree $what");
	if (!$ok)
	{
		diag($node->safe_psql('postgres',
				'SELECT * FROM differences LIMIT 10; SELECT count(*) FROM twin_heap; SELECT count(*) FROM twin_mot;'
			  . 'SELECT sum(balance) FROM account_heap; SELECT sum(balance) FROM account_mot'));
	}
	return $ok;
}

# mot.check finds nothing.
sub sound
{
	my ($node, $what, @tables) = @_;
	@tables = @TABLES unless @tables;
	my $errors = '';
	for my $table (@tables)
	{
		my ($code, $out, $err) = $node->psql('postgres', "SELECT mot.check('$table')");
		$errors .= $err if $code != 0;
	}
	return is($errors, '', $node->name . ": mot.check $what");
}

sub digest
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT * FROM digest');
}

# Waits until every WAL file up to now, this one ended, is whole in the primary's archive.
sub wait_archived
{
	my ($primary) = @_;
	my $last = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_lsn() - 1)');
	$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
	$primary->poll_query_until('postgres', "SELECT last_archived_wal >= '$last' FROM pg_stat_archiver") or die 'not archived';
	return;
}

# The redo position of the server's last checkpoint or restartpoint.
sub redo_of
{
	my ($node) = @_;
	my ($control) = run_command([ 'pg_controldata', $node->data_dir ]);
	my ($redo) = $control =~ /Latest checkpoint's REDO location: +(\S+)/;
	return $redo;
}

# Waits until `$standby` has replayed what `$node` has written, with whatever lies between them
# (cascades, archives).
sub wait_replayed
{
	my ($node, $standby) = @_;
	my $lsn = $node->safe_psql('postgres',
		'SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END');
	caught_up($standby, $lsn);
	return $lsn;
}

sub caught_up
{
	my ($standby, $lsn) = @_;
	$standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'::pg_lsn")
	  or die $standby->name . " did not replay up to $lsn";
	return;
}

# All rows that there were, equal in both kinds of table, and sound.
sub holds_all
{
	my ($at, $digest, $what) = @_;
	is(digest($at), $digest, $at->name . ": all rows $what");
	agrees($at, $what);
	sound($at, $what);
	return;
}

# Row for row, at the same LSN: nobody may be writing.
sub same_rows
{
	my ($node, $standby, $what) = @_;
	my $lsn = wait_replayed($node, $standby);
	is(digest($standby), digest($node), $standby->name . ' has the rows of ' . $node->name . " at $lsn $what");
	agrees($standby, $what);
	sound($standby, $what);
	return;
}

# The server log tells of no crash that the test did not make.
sub no_crash
{
	for my $node (@_)
	{
		my $log = slurp_file($node->logfile);
		unlike($log, qr/PANIC|TRAP|was terminated by signal|panicked/, $node->name . ': no crash in the log');
	}
	return;
}

1;
