# One COPY that is many times what a process may take of its own while it replays: on a standby with
# threads and without, beside readers, in crash recovery, and when the server is lost in the midst
# of it. The transaction is seen whole or not at all, and the memory that replay takes stays below a
# limit that does not depend on its size.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

# Rows of a kilobyte: 120 MB, or 2 GB.
my $rows = pick(120_000, 2_000_000);
# What a process that recovers may have of its own at most, in kB: the queue before the threads is
# bounded to some megabytes, a record is 4 MiB at most.
use constant PRIVATE_KB_MAX => 64 << 10;

# Starts and waits are longer, then.
$PostgreSQL::Test::Utils::timeout_default = $ENV{PGCTLTIMEOUT} = 1800 if is_full();

my $memory = pick('512MB', '4GB');
my $primary = new_primary('primary', conf => "mot.max_memory = '$memory'\nmax_wal_size = '16GB'\nwal_keep_size = '3GB'\n");
$primary->safe_psql('postgres', q(
CREATE TABLE wide (id int PRIMARY KEY, v text) USING mot;
CREATE TABLE wide_heap (rows bigint);
));
$primary->backup('base');
my $threads = new_standby('threads', $primary, 'base', conf => "mot.replay_workers = 3\nmot.replay_hand_over = always\n");
my @standbys = ($threads);
# Each is another copy of everything on disk and in memory.
push @standbys, new_standby('alone', $primary, 'base', conf => "mot.replay_workers = 0\n") unless is_full();
my $file = $primary->basedir . '/wide.copy';
$primary->safe_psql('postgres', "COPY (SELECT i, repeat(md5(i::text), 31) FROM generate_series(1, $rows) i) TO '$file'");

# What one snapshot must find.
my $whole = q(SELECT (SELECT count(*) FROM wide) = coalesce((SELECT sum(rows) FROM wide_heap), 0));
my $copy = "BEGIN; COPY wide FROM '$file'; INSERT INTO wide_heap VALUES ($rows); COMMIT";

# Lost in the midst of it: while its records are written to the log, and perhaps before or after.
my $before = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
my $run = IPC::Run::start([ $primary->installed_command('psql'), '-XAtq', '-d', $primary->connstr('postgres'), '-c', $copy ], '<', \undef, '>', \my $out, '2>&1');
$primary->poll_query_until('postgres', "SELECT pg_current_wal_insert_lsn() - '$before' > 30000000") or die 'nothing is logged';
my $kb = recovers($primary, sub { $primary->kill9; wait_gone($primary) });
$run->finish;
bounded($kb, 'startup', 'crash recovery from half a COPY');
is($primary->safe_psql('postgres', $whole), 't', 'lost in the midst of a COPY: all of it or nothing');
sound($primary, 'lost in the midst of a COPY', 'wide');
# No checkpoint behind it: a recovery finds the rows before the TRUNCATE in the last one, and has no
# room for both.
$primary->safe_psql('postgres', 'TRUNCATE wide, wide_heap');

# Standbys replay it beside readers who must see all or nothing.
wait_replayed($primary, $_) for @standbys;
my %peaks = map { $_->name => start_peak($_) } @standbys;
my $looks = 0;
$run = IPC::Run::start([ $primary->installed_command('psql'), '-XAtq', '-d', $primary->connstr('postgres'), '-c', $copy ], '<', \undef, '>', \$out, '2>&1');
for my $standby (@standbys)
{
	my $has_all = 0;
	until ($has_all)
	{
		my $seen = $standby->safe_psql('postgres', "SELECT ($whole), count(*) FROM wide_heap");
		if ($seen !~ /^t\|[01]$/) { fail($standby->name . ": a part of the COPY was seen: $seen"); last }
		$looks++;
		$has_all = $seen eq 't|1';
	}
}
$run->finish;
ok($looks >= @standbys, "$looks looks at the COPY");
bounded(stop_peak($peaks{ $_->name }), 'startup', 'replay on ' . $_->name) for @standbys;
is($_->safe_psql('postgres', q(SELECT count(*), count(*) FILTER (WHERE v = repeat(md5(id::text), 31)) FROM wide)), "$rows|$rows", $_->name . ' has every row as it was')
  for @standbys;
sound($_, 'after the COPY', 'wide') for @standbys;

# Crash recovery of all of it; and a standby that is lost with all of it before it, and catches up.
$kb = recovers($primary, sub { $primary->kill9; wait_gone($primary) });
# It loads the rows before the TRUNCATE, too, and gathers their keys: mot_engine/src/index/build
# bounds these.
bounded($kb, 'startup', 'crash recovery', $rows * 48 / 1024);
# A load of a tenth of a second shows nothing.
like($kb->{titles}, qr/^startup loading rows [1-9]\d? %, indexes \d+ %$/m, 'the title tells how far the load is') if is_full();
bounded($kb, 'mot checkpointer', 'crash recovery and the checkpoint after it');
is($primary->safe_psql('postgres', q(SELECT count(*), count(*) FILTER (WHERE v = repeat(md5(id::text), 31)) FROM wide)), "$rows|$rows", 'every row is there after it');
sound($primary, 'after crash recovery', 'wide');
$kb = recovers($threads, sub { $threads->kill9; wait_gone($threads) });
bounded($kb, 'startup', 'a standby that catches up');
same_rows($primary, $threads, 'at the end');
is($threads->safe_psql('postgres', $whole), 't', 'a standby that was lost has all of it again');
sound($threads, 'after it was lost', 'wide');

no_crash($primary, @standbys);
done_testing();

sub start_peak
{
	my ($node) = @_;
	my %peak = (output => '');
	$peak{run} = IPC::Run::start([ $^X, "$ENV{TESTDIR}/lib/peak_memory.pl", $node->data_dir ], '<', \undef, '>', \$peak{output});
	return \%peak;
}

# The most memory of each process since, in kB.
sub stop_peak
{
	my ($peak) = @_;
	$peak->{run}->signal('TERM');
	$peak->{run}->finish;
	return { titles => $peak->{output}, $peak->{output} =~ /^(.*): (\d+)$/mg };
}

# Loses the server and starts it again, watched from before the start until our checkpoint after it
# is complete.
sub recovers
{
	my ($node, $lose) = @_;
	$lose->();
	my $seen = -s $node->logfile;
	my $peak = start_peak($node);
	$node->start;
	$node->poll_query_until('postgres', "SELECT state <> 'loading' FROM mot.stat_recovery") or die 'does not load';
	$node->poll_query_until('postgres', 'SELECT pg_is_in_recovery() OR s.covered_lsn >= c.redo_lsn FROM mot.stat_checkpoint s, pg_control_checkpoint() c')
	  or die 'no checkpoint';
	my $kb = stop_peak($peak);
	like(slurp_file($node->logfile, $seen), qr/mot load complete: \d+ tables, \d+ rows, \d+ indexes, \d+ bytes; total=[\d.]+ s/, $node->name . ': the log tells of the load');
	return $kb;
}

sub bounded
{
	my ($kb, $process, $what, $more_kb) = @_;
	my $peak = $kb->{$process};
	my $most = PRIVATE_KB_MAX + int($more_kb // 0);
	ok(defined $peak && $peak > 0 && $peak <= $most, "$what: $process took " . ($peak // 'no') . " kB of its own, at most $most");
	return;
}
