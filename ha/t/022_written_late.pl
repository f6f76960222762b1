# Rows that a callback of another extension writes when the transaction is about to commit (builds
# with debug assertions stand in for that extension): they are logged like all others, or lost with
# the server, and missing on standbys.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary');
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

# In a session that has touched no memory-optimized table before, in one that has, and in a
# transaction that has.
my $late = q(INSERT INTO twin_heap VALUES (%d, 1, 0, 'late'); SELECT mot.run_at_pre_commit($$INSERT INTO twin_mot VALUES (%d, 1, 0, 'late')$$); COMMIT;);
$primary->safe_psql('postgres', 'BEGIN; ' . sprintf($late, 9001, 9001));
$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = 3 WHERE id = 1; UPDATE twin_mot SET k = 3 WHERE id = 1; BEGIN; ' . sprintf($late, 9002, 9002));
$primary->safe_psql('postgres', 'BEGIN; UPDATE twin_heap SET k = 4 WHERE id = 2; UPDATE twin_mot SET k = 4 WHERE id = 2; ' . sprintf($late, 9003, 9003));
is($primary->safe_psql('postgres', q(SELECT count(*) FROM twin_mot WHERE note = 'late')), 3, 'written late');
same_rows($primary, $standby, 'written late');
crash($primary);
agrees($primary, 'after a crash');
sound($primary, 'after a crash');
is($primary->safe_psql('postgres', q(SELECT count(*) FROM twin_mot WHERE note = 'late')), 3, 'and there after a crash');

# Behind our callback, by an extension that was preloaded before: nobody would log it any more. In a
# session that has touched no memory-optimized table before, and in one that has; at COMMIT and at
# PREPARE. The session goes on.
for my $first ('', 'SELECT FROM twin_mot WHERE id = 1;', 'UPDATE twin_mot SET k = k WHERE id = 1;')
{
	for my $end ('COMMIT', q(PREPARE TRANSACTION 'late'))
	{
		my ($code, $out, $error) = $primary->psql('postgres', qq($first BEGIN; INSERT INTO twin_heap VALUES (9010, 1, 0, 'too late');
			SELECT mot.run_behind_pre_commit(\$\$INSERT INTO twin_mot VALUES (9010, 1, 0, 'too late')\$\$); $end;
			INSERT INTO twin_heap VALUES (9011, 1, 0, 'on time'); INSERT INTO twin_mot VALUES (9011, 1, 0, 'on time');
			DELETE FROM twin_heap WHERE id = 9011; DELETE FROM twin_mot WHERE id = 9011 RETURNING note), on_error_stop => 0);
		my $what = ($first || 'nothing ') . "before, $end";
		like($error, qr/a row is changed after its transaction's changes were logged/, "written behind the log: $what");
		like($out, qr/^on time$/m, "and the next transaction writes: $what");
	}
}
is($primary->safe_psql('postgres', q(SELECT count(*) FROM twin_mot WHERE note = 'too late')), 0, 'nothing of it is there');
is($primary->safe_psql('postgres', q(SELECT count(*) FROM pg_prepared_xacts)), 0, 'nor prepared');
same_rows($primary, $standby, 'written behind the log');
crash($primary);
same_rows($primary, $standby, 'written behind the log, after a crash');
no_crash($primary, $standby);
done_testing();
