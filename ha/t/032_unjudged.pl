# VACUUM cuts the commit log off, but not what rows of memory-optimized tables may still have to ask
# it for: those of prepared transactions, which nobody stamps when they end, as long as the
# reclaimer has not come by (here it is stopped), after every kind of start, and those of a commit
# that is under way. A file of the commit log has a million transactions; these clusters begin
# shortly before the end of the first.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $file_end = 1 << 20;
my $first_file = 'pg_xact/0000';

sub new_server
{
	my ($name) = @_;
	return new_primary($name, next_xid => $file_end - 300, conf => "autovacuum = off\nhot_standby_feedback = on\nwal_receiver_status_interval = 1\n");
}

# Two transactions with everything whose outcome has to be asked for: new rows, changed ones,
# savepoints, locks.
sub prepare
{
	my ($node) = @_;
	for my $name (qw(kept lost))
	{
		my ($id, $by) = $name eq 'kept' ? (5001, 0) : (6001, 3);
		my $work = join ' ', map { "INSERT INTO $_ VALUES ($id, 1, 0, '$name'); SAVEPOINT a; INSERT INTO $_ VALUES ($id + 1, 1, 0, '$name'); RELEASE a;
			SAVEPOINT b; DELETE FROM $_ WHERE id % 14 = $by + 1; ROLLBACK TO b; UPDATE $_ SET k = k + 1 WHERE id % 14 = $by;
			SELECT count(*) FROM (SELECT FROM $_ WHERE id BETWEEN $id / 100 AND $id / 100 + 5 FOR UPDATE) l;" } qw(twin_heap twin_mot);
		$node->safe_psql('postgres', "BEGIN; $work PREPARE TRANSACTION '$name'");
	}
	return;
}

# VACUUM may cut off what it wants to, and must not want the first file. FREEZE would wait for the
# reclaimer where it finds memory-optimized tables.
sub keeps_commit_log
{
	my ($node, $what) = @_;
	my $statements = q(SELECT string_agg(format('VACUUM %s %s;', CASE WHEN amname = 'mot' THEN '' ELSE '(FREEZE)' END, c.oid::regclass), ' ')
		FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam WHERE relkind IN ('r', 'm', 't'));
	use_up_ids($node, 600);
	$node->safe_psql('postgres', q(UPDATE pg_database SET datallowconn = true WHERE datname = 'template0'));
	for (1 .. 3)
	{
		$node->safe_psql($_, $node->safe_psql($_, $statements)) for qw(postgres template1 template0);
		usleep(50_000);
	}
	ok(-e $node->data_dir . "/$first_file", $node->name . ": the commit log is kept $what");
	return;
}

sub is_whole
{
	my ($node, $what) = @_;
	is( $node->safe_psql('postgres', q(SELECT string_agg(id::text, ' ' ORDER BY id) FROM twin_mot WHERE id > 5000)),
		'5001 5002', $node->name . ": the rows of who committed, and no others, $what");
	agrees($node, $what);
	sound($node, $what);
	return;
}

# The prepared transactions end, and nobody judges what they made before it matters.
sub end_unjudged
{
	my ($node, $what) = @_;
	my $holder = $node->background_psql('postgres');
	$holder->query_safe("SELECT mot.pause_at('reclaim-after-horizon')");
	$node->safe_psql('postgres', $_) for q(COMMIT PREPARED 'kept'), q(ROLLBACK PREPARED 'lost');
	# It has something to do, and has not begun.
	$node->safe_psql('postgres', "SELECT mot.wait_until_paused('reclaim-after-horizon')");
	keeps_commit_log($node, "$what, until the reclaimer has judged");
	$holder->query_safe("SELECT mot.resume('reclaim-after-horizon')");
	$holder->quit;
	cut_commit_log($node);
	is_whole($node, $what);
	return;
}

my $primary = new_server('primary');
my ($code) = $primary->psql('postgres', 'SELECT mot.pause_points()');
plan skip_all => 'no pause points in this build' if $code != 0;
prepare($primary);
end_unjudged($primary, 'in the life of the server that prepared them');

# The standby has replayed the preparing, not the end: it did not come.
my $other = new_server('other');
$other->backup('base');
my $promoted = new_standby('promoted', $other, 'base');
prepare($other);
wait_replayed($other, $promoted);
my $xmin = $other->safe_psql('postgres', 'SELECT pg_snapshot_xmin(pg_current_snapshot())');
ok($other->poll_query_until('postgres', "SELECT age(backend_xmin) <= age('$xmin'::xid) FROM pg_stat_replication"), 'a standby asks its primary to keep what it reads, and nothing older');
promote($promoted);
end_unjudged($promoted, 'after a promotion');
crash($other);
end_unjudged($other, 'after a crash');

my $restarted = new_server('restarted');
prepare($restarted);
$restarted->restart;
end_unjudged($restarted, 'after a clean restart');

# A commit that others see already, and that has not stamped its rows.
my $slow = new_server('slow');
my $holder = $slow->background_psql('postgres');
$holder->query_safe("SELECT mot.pause_at('commit-before-hints')");
my $commit = IPC::Run::start([ $slow->installed_command('psql'), '-XAtq', '-d', $slow->connstr('postgres'), '-c',
		q(INSERT INTO twin_mot VALUES (5001, 1, 0, 'slow'), (5002, 1, 0, 'slow')) ],
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
$slow->safe_psql('postgres', "SELECT mot.wait_until_paused('commit-before-hints')");
$slow->safe_psql('postgres', q(INSERT INTO twin_heap VALUES (5001, 1, 0, 'slow'), (5002, 1, 0, 'slow')));
keeps_commit_log($slow, 'while a commit is under way');
$holder->query_safe("SELECT mot.resume('commit-before-hints')");
$commit->finish;
cut_commit_log($slow);
is_whole($slow, 'after a slow commit');
$holder->quit;

# The process that shows what is needed is started again.
my $ended = new_server('ended');
prepare($ended);
my $worker = $ended->safe_psql('postgres', 'SELECT worker_pid FROM mot.stat_checkpoint');
$ended->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
$ended->poll_query_until('postgres', "SELECT worker_pid <> $worker FROM mot.stat_checkpoint") or die 'the worker does not leave';
end_unjudged($ended, 'after the checkpoint worker was ended');

my @all = ($primary, $other, $promoted, $restarted, $slow, $ended);
unlike(slurp_file($_->logfile), qr/could not access status of transaction|could not reclaim/, $_->name . ': nobody asked for what is gone') for @all;
no_crash(@all);
done_testing();
