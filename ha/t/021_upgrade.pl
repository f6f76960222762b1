# pg_upgrade copies files and definitions: the new cluster would have memory-optimized tables
# without rows. It stops, and the old cluster is as it was.
use strict;
use warnings;

use Cwd;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = new_primary('old');
my $digest = digest($old);
$old->stop('fast');

# pg_upgrade of the old cluster into a new one with these libraries stops, and says why.
sub stops
{
	my ($name, $libraries) = @_;
	my $new = PostgreSQL::Test::Cluster->new($name);
	$new->init(extra => [ '-E', 'UTF8', '--locale=C.UTF-8' ]);
	$new->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\nmot.max_memory = '192MB'\n");
	my $bin = $old->config_data('--bindir');
	# It leaves files where it runs; the logs' names begin here.
	my $here = getcwd();
	chdir $PostgreSQL::Test::Utils::tmp_check or die;
	$old->command_fails(
		[
			$old->installed_command('pg_upgrade'), '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $bin, '-B', $bin,
			'-s', $new->host, '-p', $old->port, '-P', $new->port
		],
		"$name: pg_upgrade stops with '$libraries' preloaded");
	chdir $here or die;
	my $log = join('', map { slurp_file($_) } glob($new->data_dir . '/pg_upgrade_output.d/*/log/*'));
	like($log, qr/pg_upgrade does not bring the rows of memory-optimized tables along/, "$name: and says why");
}

# Whether the new server has the library preloaded or not.
stops('new', 'mot');
stops('new_without', '');

$old->start;
is(digest($old), $digest, 'the old cluster is as it was');
sound($old, 'after pg_upgrade');

# The same where there are no foreign tables, which would stop it first.
my $foreign = $old->safe_psql('postgres', 'SELECT ftrelid::regclass FROM pg_foreign_table');
$old->safe_psql('postgres', "DROP TABLE $_ CASCADE") for split /\n/, $foreign;
$old->safe_psql('postgres', 'CREATE TABLE alone (id int PRIMARY KEY) USING mot; INSERT INTO alone SELECT generate_series(1, 1000)');
$old->stop('fast');
stops('new_tables', 'mot');
$old->start;
is($old->safe_psql('postgres', 'SELECT count(*) FROM alone'), '1000', 'the rows are in the old cluster');
no_crash($old);
done_testing();
