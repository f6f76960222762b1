# Copies that are not pg_basebackup's: what a copier has seen stays until it is done, and a copy
# that misses everything is noticed.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', archiving => 1);
my $directory = $primary->data_dir . '/mot';

sub files { return sort grep { /^(manifest|rows)-/ } slurp_dir($directory) }
sub manifests { return grep { /^manifest-[0-9a-f]+$/ } files() }

# Several checkpoints with changes: generations come and would go.
sub checkpoints
{
	for (1 .. 4)
	{
		$primary->safe_psql('postgres', 'UPDATE account_mot SET balance = balance; CHECKPOINT');
	}
	return;
}

# A copy that lists first and reads late. Manifests last: what they name must be there, too.
sub copy_of
{
	my ($to, @list) = @_;
	# As with any copy of a running server, files may go while it lists them; the log has what they
	# were.
	IPC::Run::run([ 'cp', '-a', $primary->data_dir, $to ], '2>', \my $errors);
	my @errors = grep { !/: No such file or directory$/ } split(/\n/, $errors);
	die "@errors" if @errors;
	unlink("$to/postmaster.pid");
	unlink(glob("$to/mot/*"));
	return [ grep { system('cp', "$directory/$_", "$to/mot/") != 0 } @list ];
}

checkpoints();
cmp_ok(scalar(manifests()), '<=', 2, 'old generations go');

# The low-level backup.
my $session = $primary->background_psql('postgres');
$session->query_safe(q(SELECT pg_backup_start('copy', true)));
my @list = slurp_dir($directory);
@list = grep { !/^\./ } @list;
checkpoints();
mkdir $primary->backup_dir;
my $copy = $primary->backup_dir . '/low';
is_deeply(copy_of($copy, @list), [], 'pg_backup_start: what was there at the beginning can be copied late');
# One that is listed in two parts may meet a manifest in the second whose rows would have been in
# the first.
system_or_bail('cp', "$directory/" . (sort(manifests()))[-1], "$copy/mot/");
my $label = $session->query_safe('SET client_min_messages = warning; SELECT labelfile FROM pg_backup_stop()');
append_to_file("$copy/backup_label", "$label\n");
checkpoints();
cmp_ok(scalar(manifests()), '<=', 2, 'pg_backup_stop: old generations go');
my $restored = new_standby('restored', $primary, 'low');
same_rows($primary, $restored, 'from a low-level backup');
ok($restored->log_contains('mot has removed 1 checkpoints of its tables whose files are missing'), 'a manifest that was met without its rows was passed by');

# A session that ends in the middle of its backup, or whose backup fails to begin, holds nothing.
$session->query_safe(q(SELECT pg_backup_start('given up', true)));
$session->quit;
$primary->poll_query_until('postgres', q(SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE '%given up%' AND pid <> pg_backend_pid()));
my $failing = $primary->background_psql('postgres', on_error_stop => 0);
$failing->query(qq(SELECT pg_backup_start(repeat('x', 5000), true)));
checkpoints();
cmp_ok(scalar(manifests()), '<=', 2, 'a backup that was given up, or never began, holds nothing');
$failing->quit;

# pg_rewind reads the control file, lists, and reads the files one by one.
$session = $primary->background_psql('postgres');
$session->query_safe(q(SELECT length(pg_read_binary_file('global/pg_control'))));
@list = split /\n/, $session->query_safe(q(SELECT f FROM pg_ls_dir('mot') f));
checkpoints();
my $names = join ',', map { "'$_'" } @list;
is( $session->query_safe(
		"SELECT string_agg(f, ' ') FROM unnest(ARRAY[$names]) f WHERE pg_read_binary_file('mot/' || f, 0, 1000000, true) IS NULL"),
	'', 'pg_rewind: what was there at the beginning can be read late');
$session->quit;
$primary->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'));
checkpoints();
cmp_ok(scalar(manifests()), '<=', 2, 'pg_rewind is done: old generations go');

# A copy that missed every generation is not taken for a new cluster, neither when it is replayed
# nor after a clean start.
my $digest = digest($primary);
$primary->stop('fast');
my $aside = $primary->basedir . '/aside';
mkdir $aside;
rename("$directory/$_", "$aside/$_") for files();
$primary->start;
my ($code, undef, $error) = $primary->psql('postgres', 'SELECT count(*) FROM account_mot');
isnt($code, 0, 'a clean start without any generation: tables are refused');
like($error, qr/has held checkpoints and has none now/, 'with the reason');
$primary->stop('fast');
rename("$aside/$_", "$directory/$_") for map { s{.*/}{}r } glob("$aside/*");
$primary->start;
is(digest($primary), $digest, 'with them, everything is there');
$restored->stop('immediate');
unlink(map { $restored->data_dir . "/mot/$_" } grep { /^(manifest|rows)-/ } slurp_dir($restored->data_dir . '/mot'));
is($restored->start(fail_ok => 1), 0, 'a recovery without any generation does not start');
ok($restored->log_contains('has held checkpoints and has none now'), 'and says why');

no_crash($primary);
done_testing();
