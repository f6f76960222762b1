# Values of an operator class of users, whose keys are labels between those of their neighbours:
# over a crash, a clean restart and a promotion, with a prepared transaction each time, and on a
# standby whose snapshot is older than what the primary keeps.
use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\nmax_standby_streaming_delay = -1\n");
$primary->safe_psql('postgres', slurp_file(abs_path(dirname(__FILE__)) . '/../lib/absolute_order.sql'));
$primary->safe_psql('postgres', q(
CREATE TABLE l (id int, v int) USING mot;
CREATE UNIQUE INDEX l_v ON l (v abs_ops);
INSERT INTO l SELECT g, (g * 37 % 101) * 10 FROM generate_series(1, 100) g;
CREATE INDEX l_later ON l (v abs_ops DESC, id);
));
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

# The values, and whether each is found by the index, between its neighbours.
my $by_index = q(SET enable_seqscan = off; SET jit = off;
SELECT count(*), count(*) FILTER (WHERE found = 1 AND below = place) FROM
  (SELECT (SELECT count(*) FROM l i WHERE i.v =# l.v) found, (SELECT count(*) FROM l i WHERE i.v <# l.v) below,
    row_number() OVER (ORDER BY abs(v)) - 1 place FROM l) s);

sub holds
{
	my ($node, $rows, $what) = @_;
	is($node->safe_psql('postgres', $by_index), "$rows|$rows", "$what: each value is where it belongs");
	$node->safe_psql('postgres', "SELECT mot.check('l')");
	return;
}

holds($primary, 100, 'at first');
wait_replayed($primary, $standby);
holds($standby, 100, 'on a standby');

# The primary reuses the room of values that the standby's snapshot still sees.
my $old = $standby->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM l');
$primary->safe_psql('postgres', 'DELETE FROM l WHERE v BETWEEN 400 AND 600');
$primary->safe_psql('postgres', 'VACUUM l');
$primary->safe_psql('postgres', 'INSERT INTO l SELECT 1000 - g, g FROM generate_series(605, 395, -7) g');
my $rows = $primary->safe_psql('postgres', 'SELECT count(*) FROM l');
holds($primary, $rows, 'values in the room of others');
wait_replayed($primary, $standby);
holds($standby, $rows, 'the same on a standby');
is($old->query_safe($by_index), '100|100', 'an older snapshot finds what it sees');
$old->query_safe('COMMIT');
$old->quit;

foreach my $way ('immediate', 'fast', 'promotion')
{
	my $first = $way eq 'immediate' ? 2001 : $way eq 'fast' ? 2101 : 2201;
	$primary->safe_psql('postgres', 'CHECKPOINT') if $way eq 'fast';
	$primary->safe_psql('postgres', "BEGIN; INSERT INTO l SELECT g, -g FROM generate_series($first, $first + 9) g; PREPARE TRANSACTION '$way'");
	$primary->safe_psql('postgres', "INSERT INTO l VALUES ($first, $first + 50)");
	if ($way eq 'promotion')
	{
		wait_replayed($primary, $standby);
		$primary->stop('immediate');
		$standby->promote;
		$primary = $standby;
	}
	else
	{
		$primary->stop($way);
		$primary->start;
	}
	my (undef, undef, $stderr) = $primary->psql('postgres', "SET lock_timeout = '50ms'; INSERT INTO l VALUES (0, $first)");
	like($stderr, qr/lock timeout/, "$way: a value of a prepared transaction is waited for");
	$primary->safe_psql('postgres', "INSERT INTO l VALUES ($first, $first + 20)");
	$primary->safe_psql('postgres', "COMMIT PREPARED '$way'");
	$rows += 12;
	holds($primary, $rows, $way);
	(undef, undef, $stderr) = $primary->psql('postgres', "INSERT INTO l VALUES (0, $first)");
	like($stderr, qr/unique constraint "l_v"/, "$way: a value stays unique");
}

done_testing();
