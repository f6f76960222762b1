# Switchover, failover and the way back: timelines, pg_rewind from a running server and from a
# directory, and the promoted server's own checkpoints, each time followed by a loss of the server
# that has just been promoted.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %nodes;
$nodes{a} = new_primary('a');
$nodes{a}->backup('base');
$nodes{b} = new_standby('b', $nodes{a}, 'base');

# Lets a stopped server stream from another one.
sub follow
{
	my ($node, $upstream) = @_;
	$node->append_conf('postgresql.conf', "primary_conninfo = '" . $upstream->connstr . "'\n");
	$node->set_standby_mode;
	$node->start;
	return;
}

# Switchover: a clean stop, the standby has everything, the old primary follows without pg_rewind.
my $load = start_load($nodes{a}, may_fail => 1);
my $readers = start_readers($nodes{b}, may_fail => 1);
$nodes{a}->stop('fast');
stop_load($load);
stop_readers($readers);
my $digest = digest($nodes{b});
promote($nodes{b});
is(digest($nodes{b}), $digest, 'switchover: promotion changes no row');
agrees($nodes{b}, 'after the switchover');
sound($nodes{b}, 'after the switchover');
follow($nodes{a}, $nodes{b});
$load = start_load($nodes{b});
stop_load($load);
same_rows($nodes{b}, $nodes{a}, 'after the switchover');

# Failovers to and fro: the primary dies under a load, the standby takes over, dies at once itself
# (before or after a checkpoint of its own), recovers, and the old one comes back by pg_rewind.
my ($primary, $standby) = ('b', 'a');
my @rounds = (
	{ source => 'server', checkpoint => 0 },
	{ source => 'server', checkpoint => 1 },
	{ source => 'directory', checkpoint => 1 });
push @rounds, map { ({ source => 'server', checkpoint => $_ % 2 }) } 1 .. pick(0, 10);
for my $round (@rounds)
{
	my $what = "failover to $standby, pg_rewind from a $round->{source}, " . ($round->{checkpoint} ? 'with' : 'without') . ' a checkpoint';
	my ($old, $new) = @nodes{ $primary, $standby };
	$load = start_load($old, may_fail => 1);
	# What the standby does not get: the old primary's timeline runs on.
	$new->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	$new->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused'));
	refuse_replication($old);
	my $before = Ledger::written($old);
	$old->poll_query_until('postgres', "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint > $before + 100") or die 'no load';
	$old->safe_psql('postgres', 'CHECKPOINT') if $round->{checkpoint};
	$old->kill9;
	stop_load($load);
	wait_gone($old);
	allow_replication($old);
	promote($new);
	agrees($new, "$what: promoted");
	sound($new, "$what: promoted");
	my $at_promotion = digest($new);
	if ($round->{checkpoint}) { $new->safe_psql('postgres', 'CHECKPOINT') }
	crash($new);
	is(digest($new), $at_promotion, "$what: the same rows after a crash of the promoted server");
	$load = start_load($new);
	stop_load($load);
	my $before_crash = digest($new);
	crash($new);
	is(digest($new), $before_crash, "$what: the same rows after another one");
	sound($new, "$what: after the crashes");
	# pg_rewind reads the timeline from the control file.
	$new->safe_psql('postgres', 'CHECKPOINT');

	# Generations of files come and go while pg_rewind copies: it is not a base backup that they would
	# stay for.
	my $checkpoints;
	my @source = ('--source-server', $new->connstr('postgres'));
	if ($round->{source} eq 'directory')
	{
		$new->stop('fast');
		@source = ('--source-pgdata', $new->data_dir);
	}
	else
	{
		$load = start_load($new);
		$checkpoints = start_checkpoints($new);
	}
	my $conf = slurp_file($old->data_dir . '/postgresql.conf');
	command_ok([ 'pg_rewind', '--target-pgdata', $old->data_dir, @source, '--no-sync' ], "$what: pg_rewind");
	unlink $old->data_dir . '/postgresql.conf';
	append_to_file($old->data_dir . '/postgresql.conf', $conf);
	if ($round->{source} eq 'directory')
	{
		$new->start;
	}
	else
	{
		stop_checkpoints($checkpoints);
		stop_load($load);
	}
	follow($old, $new);
	same_rows($new, $old, "$what: rejoined");
	$load = start_load($new);
	stop_load($load);
	same_rows($new, $old, "$what: streaming again");
	($primary, $standby) = ($standby, $primary);
}

# Ends streaming and refuses it from here on: the standby does not get what follows.
sub refuse_replication
{
	my ($node) = @_;
	my $hba = slurp_file($node->data_dir . '/pg_hba.conf');
	unlink $node->data_dir . '/pg_hba.conf';
	append_to_file($node->data_dir . '/pg_hba.conf', "local replication all reject\n$hba");
	$node->reload;
	$node->poll_query_until('postgres',
		'SELECT count(pg_terminate_backend(pid)) = 0 FROM pg_stat_replication') or die 'still streaming';
	return;
}

sub allow_replication
{
	my ($node) = @_;
	my $hba = slurp_file($node->data_dir . '/pg_hba.conf');
	unlink $node->data_dir . '/pg_hba.conf';
	append_to_file($node->data_dir . '/pg_hba.conf', $hba =~ s/^local replication all reject\n//r);
	return;
}

no_crash(values %nodes);
done_testing();
