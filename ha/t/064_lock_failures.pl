# log_lock_failures (since 18) logs who has a row that NOWAIT does not get, as for heap tables.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_primary('primary');
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 180000)
{
	plan skip_all => 'there is no such setting';
}
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; UPDATE twin_mot SET k = k WHERE id = 1; UPDATE twin_heap SET k = k WHERE id = 1');
foreach my $setting ('on', 'off')
{
	foreach my $table ('twin_heap', 'twin_mot')
	{
		my ($code, $out, $err) = $node->psql('postgres',
			"SET log_lock_failures = $setting; SET client_min_messages = log; SELECT FROM $table WHERE id = 1 FOR UPDATE NOWAIT");
		my $logs = $err =~ /LOG:  process \d+ could not obtain ShareLock on transaction \d+/ ? 'on' : 'off';
		is($logs, $setting, "$table: log_lock_failures = $setting");
		like($err, qr/could not obtain lock on row in relation "$table"/, "$table: and the error");
	}
}
$holder->quit;
done_testing();
