# A standby that cannot be read is promoted with archiving on, which renames the old timeline's last
# segment, and is lost before its first checkpoint: the gap behind our last checkpoint ends in that
# segment, and is read from the new timeline's file.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary');
$primary->backup('base');
# With a limit on slots PostgreSQL's checkpoint waits for ours, which fails.
my $standby = new_standby('standby', $primary, 'base',
	conf => "hot_standby = off\narchive_mode = on\narchive_command = 'true'\nmax_slot_wal_keep_size = 1GB\n");
$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1; CHECKPOINT');
my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
$primary->wait_for_catchup($standby, 'replay', $lsn);
# It makes its restartpoint when it is shut down.
$standby->stop('fast');
$standby->start;
$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1');
$lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
$primary->wait_for_catchup($standby, 'replay', $lsn);
my $digest = digest($primary);

chmod 0500, $standby->data_dir . '/mot' or die;
promote($standby);
$standby->poll_query_until('postgres', 'SELECT true') or die 'not promoted';
is(digest($standby), $digest, 'the rows of the promoted server');
my ($control) = run_command([ 'pg_controldata', $standby->data_dir ]);
like($control, qr/Latest checkpoint's TimeLineID: +1\n/, 'it has made no checkpoint on its timeline');
$standby->stop('immediate');
my @partial = glob $standby->data_dir . '/pg_wal/*.partial';
is(scalar @partial, 1, 'the last segment of the old timeline was renamed');
chmod 0700, $standby->data_dir . '/mot' or die;
my $log_before = -s $standby->logfile;
ok($standby->start(fail_ok => 1), 'it starts');
$standby->poll_query_until('postgres', 'SELECT true') or die 'it does not recover';
like(slurp_file($standby->logfile, $log_before), qr/mot replayed [1-9]\d* of \d+ WAL records between its checkpoint/, 'it has read a gap');
is(digest($standby), $digest, 'the rows after the crash');
agrees($standby, 'after the crash');
sound($standby, 'after the crash');
no_crash($primary, $standby);
done_testing();
