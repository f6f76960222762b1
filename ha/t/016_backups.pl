# Base backups of every form that pg_basebackup has (plain and tar, WAL not at all, fetched and
# streamed, compressed by the client and by the server), with a tablespace that goes elsewhere, each
# taken under load and beside checkpoints, verified, and restored as a standby.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# One that the archive alone gives its WAL, one through a compressing server to a plain directory,
# one in tar files.
my @short = map { { format => $_->[0], wal => $_->[1], compress => $_->[2] } } [qw(p none none)], [qw(p stream server-gzip)], [qw(t fetch client-gzip)];
my @full;
for my $format (qw(p t))
{
	for my $wal (qw(none fetch stream))
	{
		# What the client compresses it leaves in tar files.
		my @compress = qw(none server-gzip);
		push @compress, 'client-gzip' if $format eq 't';
		# Without the programs that unpack tar files of these kinds: the client does, into plain
		# directories.
		push @compress, grep { check_pg_config('#define USE_' . uc((split /-/)[1]) . ' 1') } qw(server-lz4 server-zstd) if $format eq 'p';
		push @full, map { { format => $format, wal => $wal, compress => $_ } } @compress;
	}
}
my @forms = @{ pick(\@short, \@full) };

my $primary = new_primary('primary', archiving => 1);
my $elsewhere = PostgreSQL::Test::Utils::tempdir_short();
$primary->safe_psql('postgres', qq(CREATE TABLESPACE elsewhere LOCATION '$elsewhere'; ALTER TABLE account_heap SET TABLESPACE elsewhere));
my $space = $primary->safe_psql('postgres', q(SELECT oid FROM pg_tablespace WHERE spcname = 'elsewhere'));
my $load = start_load($primary);

my @standbys;
for my $form (@forms)
{
	my $name = join '_', @$form{qw(format wal compress)};
	my $checkpoints = start_checkpoints($primary);
	my $standby = PostgreSQL::Test::Cluster->new($name =~ tr/-/_/r);
	restore($standby, $form, $name);
	stop_checkpoints($checkpoints);
	$standby->start;
	if (is_full())
	{
		# One after the other: they are many.
		stop_load($load);
		compare($standby, $name);
		$standby->stop('fast');
		$load = start_load($primary);
	}
	else
	{
		push @standbys, [ $standby, $name ];
	}
}
stop_load($load);
compare(@$_) for @standbys;
no_crash($primary);
done_testing();

# Takes a backup, verifies it, and makes it the data directory of `$node`.
sub restore
{
	my ($node, $form, $name) = @_;
	my ($data, $mapped) = ($node->data_dir, $node->basedir . '/elsewhere');
	my @options = ('-h', $primary->host, '-p', $primary->port, '--checkpoint', 'fast', '--no-sync', '-X', $form->{wal});
	push @options, '--compress', $form->{compress} if $form->{compress} ne 'none';
	if ($form->{format} eq 'p')
	{
		rmdir $data;
		command_ok([ 'pg_basebackup', '-D', $data, '-Fp', "--tablespace-mapping=$elsewhere=$mapped", @options ], "pg_basebackup: $name");
	}
	else
	{
		my $tar = $primary->backup_dir . "/$name";
		command_ok([ 'pg_basebackup', '-D', $tar, '-Ft', @options ], "pg_basebackup: $name");
		mkdir $_, 0700 for $data, $mapped;
		unpack_tar($tar, 'base', $data);
		unpack_tar($tar, $space, $mapped);
		unpack_tar($tar, 'pg_wal', "$data/pg_wal") if $form->{wal} eq 'stream';
		system_or_bail('cp', "$tar/backup_manifest", $data);
		# The tablespace goes elsewhere here, too.
		my $map = slurp_file("$data/tablespace_map");
		unlink "$data/tablespace_map";
		append_to_file("$data/tablespace_map", $map =~ s/^($space ).*$/$1$mapped/mr);
		symlink $mapped, "$data/pg_tblspc/$space" or die;
	}
	chmod 0700, $data;
	# Without its WAL there is nothing to parse. The map was changed above.
	command_ok([ 'pg_verifybackup', '--ignore', 'tablespace_map', $form->{wal} eq 'none' ? '-n' : (), $data ], "pg_verifybackup: $name");
	$node->append_conf('postgresql.conf', 'port = ' . $node->port . "\nunix_socket_directories = '" . $node->host . "'\narchive_mode = off\n");
	$node->enable_streaming($primary);
	$node->enable_restoring($primary, 1) if $form->{wal} eq 'none';
	return;
}

sub unpack_tar
{
	my ($from, $name, $to) = @_;
	my ($file) = grep { -e } map { "$from/$name.$_" } qw(tar tar.gz);
	system_or_bail('tar', $file =~ /gz$/ ? 'xzf' : 'xf', $file, '-C', $to);
	return;
}

sub compare
{
	my ($standby, $name) = @_;
	same_rows($primary, $standby, "from a backup: $name");
	is($standby->safe_psql('postgres', q(SELECT pg_relation_filepath('account_heap') ~ '^pg_tblspc')), 't', "$name: with rows in a tablespace");
	no_crash($standby);
	return;
}
