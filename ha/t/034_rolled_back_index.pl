# An index that was logged, and whose making failed behind that, gives its place in the table back: a table with all other places taken gets its next
# index on a standby beside an older snapshot, too, and in crash recovery.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $most = 64;
# Removal of dead catalog rows would hold up replay.
my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
$primary->safe_psql('postgres', qq(
CREATE TABLE h (c text);
CREATE FOREIGN TABLE crowded (id int PRIMARY KEY, x int) SERVER mot;
INSERT INTO crowded SELECT i, i % 10 FROM generate_series(1, 100) i;
DO \$\$ BEGIN FOR i IN 3..$most LOOP CREATE INDEX ON crowded (x); END LOOP; END \$\$;
));
wait_replayed($primary, $standby);

# Below it the standby's reclaimer settles nothing.
my $reader = $standby->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM twin_mot');

my $question = 'SELECT count(*) FROM h WHERE c =';
my $fails = $primary->background_psql('postgres', on_error_stop => 0);
$fails->query_safe("BEGIN ISOLATION LEVEL SERIALIZABLE; $question 'a'; INSERT INTO h VALUES ('b'); CREATE INDEX ON crowded (x)");
$primary->safe_psql('postgres', "BEGIN ISOLATION LEVEL SERIALIZABLE; $question 'b'; INSERT INTO h VALUES ('a'); COMMIT");
$fails->query('COMMIT');
like($fails->{stderr}, qr/could not serialize access/, 'the transaction fails when it commits, with its definitions logged');
$fails->{stderr} = '';
# Before the reclaimer says in the log that it frees the index.
$fails->query_safe('CREATE INDEX ON crowded (x)');
$fails->quit;

sub is_crowded
{
	my ($node, $what) = @_;
	is( $node->safe_psql('postgres', q(SELECT count(*) FROM pg_index WHERE indrelid = 'crowded'::regclass)),
		$most, $node->name . ": the last place is taken $what");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM crowded WHERE x = 3'), 10, $node->name . ": rows by an index $what");
	sound($node, $what, 'crowded');
	return;
}

is_crowded($primary, 'where it was freed');
wait_replayed($primary, $standby);
is_crowded($standby, 'beside an older snapshot');
$reader->query_safe('COMMIT');
$reader->quit;
crash($primary);
is_crowded($primary, 'after a crash');
wait_replayed($primary, $standby);
is_crowded($standby, 'behind that');

no_crash($primary, $standby);
done_testing();
