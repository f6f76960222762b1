# wal_level = minimal: core leaves out the WAL of heap tables that a transaction has made or
# emptied, and writes their files at its commit. Rows of memory-optimized tables are in no file, so
# their records are written all the same: what was committed is there after a crash, as in heap
# tables.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_primary('primary', conf => "wal_level = minimal\nmax_wal_senders = 0\nautovacuum = off\nwal_skip_threshold = 0\n");
my $file = $node->basedir . '/rows';
append_to_file($file, join('', map { "$_\trow $_\n" } 1 .. 1000));

# The loads for which core leaves the WAL out; METHOD is the access method.
my %loads = (
	created => q(BEGIN; CREATE TABLE METHOD_created (id int PRIMARY KEY, v text) USING METHOD; COPY METHOD_created FROM 'FILE'; COMMIT),
	selected => q(CREATE TABLE METHOD_selected USING METHOD AS SELECT i AS id, 'row ' || i AS v FROM generate_series(1, 1000) i),
	emptied => q(BEGIN; TRUNCATE METHOD_emptied; COPY METHOD_emptied FROM 'FILE'; DELETE FROM METHOD_emptied WHERE id % 7 = 0; COMMIT),
	in_savepoint => q(BEGIN; SAVEPOINT s; CREATE TABLE METHOD_lost (id int) USING METHOD; INSERT INTO METHOD_lost VALUES (1); ROLLBACK TO s;
		CREATE TABLE METHOD_in_savepoint (id int PRIMARY KEY, v text) USING METHOD; SAVEPOINT t; COPY METHOD_in_savepoint FROM 'FILE';
		RELEASE t; UPDATE METHOD_in_savepoint SET v = 'changed' WHERE id < 10; SAVEPOINT u; DELETE FROM METHOD_in_savepoint; ROLLBACK TO u; COMMIT),
	rewritten => q(BEGIN; ALTER TABLE METHOD_rewritten ALTER id TYPE bigint; UPDATE METHOD_rewritten SET v = 'rewritten' WHERE id = 3; COMMIT),
	clustered => q(CLUSTER METHOD_clustered USING METHOD_clustered_pkey),
	indexed => q(BEGIN; TRUNCATE METHOD_indexed; COPY METHOD_indexed FROM 'FILE'; CREATE INDEX ON METHOD_indexed (v); COMMIT),
	prepared => q(BEGIN; CREATE TABLE METHOD_prepared (id int PRIMARY KEY, v text) USING METHOD; COPY METHOD_prepared FROM 'FILE';
		PREPARE TRANSACTION 'METHOD'),
);

sub run_load
{
	my ($load, $method) = @_;
	my $sql = $loads{$load} =~ s/METHOD/$method/gr =~ s/FILE/$file/gr;
	$node->safe_psql('postgres', $sql);
	return;
}

sub rows
{
	my ($load, $method) = @_;
	my $table = "${method}_$load";
	return $node->safe_psql('postgres', "SELECT count(*), sum(id), count(DISTINCT v), min(v), max(v) FROM $table");
}

sub agree
{
	my ($what, @loads) = @_;
	for my $load (@loads)
	{
		my $heap = rows($load, 'heap');
		is(rows($load, 'mot'), $heap, "$load: as heap, $what");
		$node->safe_psql('postgres', "SET enable_seqscan = off; SELECT mot.check('mot_$load'), count(*) FROM mot_$load WHERE id > 0");
	}
	return;
}

for my $method (qw(heap mot))
{
	for my $load (qw(emptied rewritten clustered indexed))
	{
		$node->safe_psql('postgres', "CREATE TABLE ${method}_$load (id int PRIMARY KEY, v text) USING $method;
			INSERT INTO ${method}_$load SELECT i, 'old ' || i FROM generate_series(1, 500) i");
	}
}
$node->safe_psql('postgres', 'CHECKPOINT');
my @committed = grep { $_ ne 'prepared' } sort keys %loads;
for my $load (@committed, 'prepared')
{
	run_load($load, $_) for qw(heap mot);
}
agree('before a crash', @committed);
crash($node);
agree('after a crash', @committed);
$node->safe_psql('postgres', "COMMIT PREPARED '$_'") for qw(heap mot);
agree('when prepared loads have ended', 'prepared');
$node->safe_psql('postgres', 'CHECKPOINT');
crash($node);
agree('after a checkpoint and a crash', @committed, 'prepared');

# What a crash cuts short is gone.
for my $method (qw(heap mot))
{
	my $session = $node->background_psql('postgres');
	$session->query_safe("BEGIN; TRUNCATE ${method}_emptied; INSERT INTO ${method}_emptied VALUES (1, 'lost')");
	crash($node);
	eval { $session->quit };
}
agree('when a load was cut short', @committed, 'prepared');
$node->restart;
agree('after a clean restart', @committed, 'prepared');

no_crash($node);
done_testing();
