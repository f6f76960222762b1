# Keys that core checks (deferrable ones, exclusion constraints) and included columns across
# recoveries: a crash, a clean restart, a promotion, each with a transaction that was prepared
# before. The engine's definition of such an index says nothing of the constraint.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

$primary->safe_psql('postgres', q(
CREATE TABLE d (id int PRIMARY KEY DEFERRABLE, u int UNIQUE DEFERRABLE INITIALLY DEFERRED, x int, EXCLUDE (x WITH =)) USING mot;
CREATE TABLE i (id int, b int, n jsonb, PRIMARY KEY (id) INCLUDE (n)) USING mot;
INSERT INTO d SELECT g, g, g FROM generate_series(1, 10) g;
INSERT INTO i SELECT g, g, to_jsonb(g) FROM generate_series(1, 10) g;
CREATE UNIQUE INDEX taken ON i (b) INCLUDE (id);
));

# What each statement is refused with.
sub refused
{
	my ($node, $statement, $expected, $what) = @_;
	my (undef, undef, $stderr) = $node->psql('postgres', $statement);
	like($stderr, qr/$expected/, "$what: $statement");
	return;
}

my $shift = 0;

# Rows are where the changes have left them, the constraints hold, and row locks take a deferrable
# key for one.
sub holds
{
	my ($node, $what) = @_;
	my $all = 'count(*), min(id), max(id), min(u), max(u), min(x), max(x)';
	my ($first, $last) = (1 + $shift, 10 + $shift);
	is($node->safe_psql('postgres', "SELECT $all FROM d"), join('|', 10, ($first, $last) x 3), "$what: rows");
	refused($node, "INSERT INTO d VALUES ($last, 0, 0)", 'unique constraint "d_pkey"', $what);
	refused($node, "BEGIN; INSERT INTO d VALUES (0, $last, 0); COMMIT", 'unique constraint "d_u_key"', $what);
	refused($node, "INSERT INTO d VALUES (0, 0, $last)", 'exclusion constraint "d_x_excl"', $what);
	refused($node, 'INSERT INTO i VALUES (3)', 'unique constraint "i_pkey"', $what);
	my $locks = $node->background_psql('postgres');
	$locks->query_safe('BEGIN; SELECT FROM d FOR KEY SHARE');
	refused($node, "SET lock_timeout = '50ms'; UPDATE d SET u = 0 WHERE u = $last", 'lock timeout', $what);
	$locks->query_safe('COMMIT');
	$locks->quit;
	$node->safe_psql('postgres', 'UPDATE d SET id = id + 1, u = u + 1');
	$node->safe_psql('postgres', 'UPDATE d SET x = id WHERE id = ' . (11 + $shift - $_)) for 0 .. 9;
	$shift++;
	$node->safe_psql('postgres', "SELECT mot.check('d'), mot.check('i')");
	return;
}

holds($primary, 'at first');
foreach my $way ('immediate', 'fast', 'promotion')
{
	$primary->safe_psql('postgres', 'CHECKPOINT') if $way eq 'fast';
	$primary->safe_psql('postgres', "BEGIN; UPDATE d SET id = id + 1, u = u + 1; PREPARE TRANSACTION '$way'");
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
	refused($primary, "SET lock_timeout = '50ms'; INSERT INTO d VALUES (" . (1 + $shift) . ', 0, 0)', 'lock timeout', "$way, before its end");
	$primary->safe_psql('postgres', "COMMIT PREPARED '$way'");
	$primary->safe_psql('postgres', 'UPDATE d SET x = id WHERE id = ' . (11 + $shift - $_)) for 0 .. 9;
	$shift++;
	holds($primary, $way);
}
# The index becomes one of a deferrable constraint, and the server stops before a checkpoint.
$primary->safe_psql('postgres', 'ALTER TABLE i ADD CONSTRAINT late UNIQUE USING INDEX taken DEFERRABLE');
$primary->stop('immediate');
$primary->start;
$primary->safe_psql('postgres', 'UPDATE i SET b = b + 1');
refused($primary, 'UPDATE i SET b = 5 WHERE id = 1', 'unique constraint "late"', 'an index that was taken');
$primary->safe_psql('postgres', "SELECT * FROM mot.check('i')");
done_testing();
