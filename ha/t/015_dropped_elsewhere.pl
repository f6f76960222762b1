# A database that is dropped while the library is not preloaded: its tables' memory is given back at
# the next start with the library, on standbys, too; and nothing is taken from a database that is
# there, wherever its files are.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "allow_in_place_tablespaces = on\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
my $storages = q(SELECT count(*) FROM mot.storages() WHERE database = %s);

sub make
{
	my ($name, $options) = @_;
	$primary->safe_psql('postgres', "CREATE DATABASE $name $options");
	$primary->safe_psql($name, q(CREATE EXTENSION mot;
CREATE TABLE one (id int PRIMARY KEY, v text) USING mot;
CREATE TABLE two (id int PRIMARY KEY) USING mot;
INSERT INTO one SELECT i, repeat('v', 200) FROM generate_series(1, 20000) i));
	return $primary->safe_psql('postgres', "SELECT oid FROM pg_database WHERE datname = '$name'");
}

sub preload
{
	my ($libraries) = @_;
	$primary->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n");
	$primary->restart;
	return;
}

sub stays_whole
{
	my ($what) = @_;
	for my $name (qw(stays moved))
	{
		is($primary->safe_psql($name, q(SELECT (mot.check('one')).rows)), '20000', "$name: its rows are there $what");
	}
	return;
}

$primary->safe_psql('postgres', q(CREATE TABLESPACE elsewhere LOCATION ''));
my $stays = make('stays', '');
my $moved = make('moved', 'TABLESPACE elsewhere');
my $gone = make('gone', '');
my $gone_too = make('gone_too', 'TABLESPACE elsewhere');
wait_replayed($primary, $standby);

# Nothing is dropped: a look, since one database is not where most are.
$primary->restart;
$primary->poll_query_until('postgres', q(SELECT state = 'ready' FROM mot.stat_recovery)) or die 'not loaded';
stays_whole('after a restart');

preload('');
$primary->safe_psql('postgres', "DROP DATABASE $_") for qw(gone gone_too);
$primary->safe_psql('postgres', q(ALTER DATABASE stays RENAME TO renamed));
$primary->safe_psql('postgres', q(ALTER DATABASE renamed RENAME TO stays));
preload('mot');
for my $oid ($gone, $gone_too)
{
	ok($primary->poll_query_until('postgres', sprintf($storages, $oid), '0'), "storages of $oid are gone");
	ok($standby->poll_query_until('postgres', sprintf($storages, $oid), '0'), "storages of $oid are gone on the standby");
}
ok($primary->log_contains("mot frees 2 tables of the database with OID $gone,"), 'the log says so');
is($primary->safe_psql('postgres', sprintf($storages, $_)), '2', "storages of $_ stay") for $stays, $moved;
ok( $primary->poll_query_until('postgres', q(SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'mot orphans')),
	'the worker has ended');
stays_whole('after the others are freed');
crash($primary);
is($primary->safe_psql('postgres', sprintf($storages, $_)), '0', "storages of $_ are gone after a crash") for $gone, $gone_too;
stays_whole('after a crash');
$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1');
same_rows($primary, $standby, 'at the end');
wait_replayed($primary, $standby);
is($standby->safe_psql($_, q(SELECT (mot.check('one')).rows)), '20000', "$_: its rows are there on the standby") for qw(stays moved);

no_crash($primary, $standby);
done_testing();
