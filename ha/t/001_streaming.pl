# Streaming standbys from base backups of every form, taken while rows are written and checkpoints
# happen; consistent snapshots on the standby; a cascade; a standby's own backup.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary');
my $load = start_load($primary);

# Backups of all forms while rows are written. A CHECKPOINT of somebody else falls into each of
# them.
my %forms = (
	plain_stream => [ '-Fp', '-X', 'stream' ],
	plain_fetch  => [ '-Fp', '-X', 'fetch' ],
	tar_stream   => [ '-Ft', '-X', 'stream' ],
	tar_fetch    => [ '-Ft', '-X', 'fetch' ]);
# 016_backups.pl has all forms there are.
delete @forms{qw(plain_fetch tar_stream)} unless is_full();
my $checkpoints = start_checkpoints($primary);
for my $form (sort keys %forms)
{
	$primary->backup($form, backup_options => $forms{$form});
	next unless $form =~ /^tar/;
	unpack_backup($primary, $form, "${form}_unpacked");
}
stop_checkpoints($checkpoints);
for my $form (sort keys %forms)
{
	my $path = $primary->backup_dir . '/' . $form . ($form =~ /^tar/ ? '_unpacked' : '');
	command_ok([ 'pg_verifybackup', $path ], "pg_verifybackup: $form");
}

my @standbys =
  map { new_standby("standby_$_", $primary, /^tar/ ? "${_}_unpacked" : $_) } sort keys %forms;
my @readers = map { start_readers($_) } @standbys[ 0, 1 ];

# A cascade: the standby of a standby, from that standby's own backup.
my $upstream = $standbys[0];
$upstream->backup('of_standby');
command_ok([ 'pg_verifybackup', $upstream->backup_dir . '/of_standby' ], "pg_verifybackup: a standby's backup");
my $cascade = new_standby('cascade', $upstream, 'of_standby');
push @readers, start_readers($cascade);

# Definitions change under the readers of other tables, too.
$primary->safe_psql('postgres', q(
CREATE TABLE late (id int PRIMARY KEY, v text) USING mot;
INSERT INTO late SELECT i, i FROM generate_series(1, 20000) i;
CREATE INDEX late_v ON late (v);
BEGIN;
CREATE TABLE never (id int PRIMARY KEY) USING mot;
INSERT INTO never VALUES (1);
ROLLBACK;
CREATE TABLE gone (id int PRIMARY KEY) USING mot;
INSERT INTO gone SELECT generate_series(1, 1000);
DROP TABLE gone;
DELETE FROM late WHERE id % 3 = 0;
));
stop_readers($_) for @readers;
stop_load($load);

same_rows($primary, $_, 'after the load') for @standbys, $cascade;
for my $standby (@standbys, $cascade)
{
	sound($standby, 'on a table made meanwhile', 'late');
	is( $standby->safe_psql('postgres', q(SET enable_seqscan = off; SELECT count(*), max(id) FROM late WHERE v > '5')),
		$primary->safe_psql('postgres', q(SELECT count(*), max(id) FROM late WHERE v > '5')),
		$standby->name . ': an index made while it streamed');
	# Parallel workers see what their leader's snapshot sees, on a standby, too.
	my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;'
	  . ' SET parallel_leader_participation = off;';
	my $sums = 'SELECT count(*), sum(id), sum(length(v)), count(DISTINCT ctid) FROM late WHERE length(v) > 0';
	like($standby->safe_psql('postgres', "$parallel EXPLAIN $sums"),
		qr/Parallel (Foreign|Seq) Scan on late/, $standby->name . ': a parallel plan');
	is( $standby->safe_psql('postgres', "$parallel $sums"),
		$primary->safe_psql('postgres', $sums), $standby->name . ': rows by parallel workers');
	my ($code, undef, $error) = $standby->psql('postgres', 'UPDATE account_mot SET balance = 0');
	like($error, qr/cannot execute UPDATE in a read-only transaction/, $standby->name . ': refuses writes');
	# In core's words, whosever table it is: clients tell a standby by them.
	for my $table ('account_mot', 'account_heap')
	{
		($code, undef, $error) = $standby->psql('postgres', "ALTER TABLE $table ADD COLUMN no int");
		like($error, qr/cannot execute ALTER TABLE in a read-only transaction/, $standby->name . ": refuses to alter $table");
	}
}

# The server above the cascade takes over: the cascade goes on, onto its timeline.
$primary->kill9;
promote($upstream);
my $after = start_load($upstream);
stop_load($after);
same_rows($upstream, $cascade, 'after its upstream was promoted');
is($cascade->safe_psql('postgres', 'SELECT received_tli FROM pg_stat_wal_receiver'), '2', 'on the new timeline');

no_crash($primary, @standbys, $cascade);
done_testing();
