# Keys in the order of collations across recoveries, on a standby, and where the machine's locales
# are changed. The order is always that of the library as it is. While the server runs, a process
# whose library orders otherwise than the index does is refused.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A locale of this test's own: English first, Czech later (there "ch" comes behind "h"), then none.
my $locales = PostgreSQL::Test::Utils::tempdir() . '/locales';
mkdir $locales or die;
my $moving = "$locales/xx_MOT.UTF-8";
sub install_locale
{
	my ($source) = @_;
	my $made = "$locales/new";
	system_or_bail('localedef', '--no-archive', '-i', $source, '-f', 'UTF-8', $made);
	remove_locale() if -e $moving;
	rename $made, $moving or die;
	return;
}
sub remove_locale { return system_or_bail('rm', '-rf', $moving) }
install_locale('en_US');
$ENV{LOCPATH} = "$locales:/usr/lib/locale";

my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

my %orders = (
	libc => 'SELECT w FROM words WHERE w > %s ORDER BY w, id', libc_backward => 'SELECT w FROM words WHERE w < %s ORDER BY w DESC, id DESC',
	icu => 'SELECT i FROM words WHERE i >= %s ORDER BY i', loose => 'SELECT id FROM words WHERE n = %s', computed => 'SELECT id FROM words WHERE lower(w) = lower(%s)',
	held => 'SELECT id FROM words WHERE a = ARRAY[%s] ORDER BY id', first => 'SELECT min(w), max(w), min(i), max(i) FROM words WHERE w <> %s');
# What each index gives, and what a scan of all rows and a sort do.
sub looks_right
{
	my ($node, $what) = @_;
	for my $name (sort keys %orders)
	{
		my $query = sprintf($orders{$name}, "'cháos'");
		my $by_index = $node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; $query");
		my $by_rows = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; $query");
		isnt($by_rows, '', "$what: $name finds rows");
		is($by_index, $by_rows, "$what: $name");
	}
	return if $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	$node->safe_psql('postgres', "SELECT * FROM mot.check('words')");
	like(($node->psql('postgres', "INSERT INTO words (id, w, n) VALUES (0, 'x', 'CHÁOS')"))[2], qr/duplicate key/, "$what: a key is kept");
	return;
}
sub ch_is_behind_h
{
	my ($node) = @_;
	return $node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM words WHERE w > 'hz' AND w LIKE 'ch%'") > 0;
}

$primary->safe_psql('postgres', q{
	CREATE COLLATION moving (provider = libc, locale = 'xx_MOT.UTF-8');
	CREATE COLLATION icu (provider = icu, locale = 'en');
	CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE TABLE words (id int PRIMARY KEY, w text COLLATE moving NOT NULL, i text COLLATE icu, n text COLLATE loose UNIQUE, a text[] COLLATE moving) USING mot;
	CREATE INDEX ON words (w, id);
	CREATE INDEX ON words (i DESC);
	CREATE INDEX ON words (a);
	CREATE INDEX ON words (lower(w))});
sub add
{
	my ($from, $to) = @_;
	$primary->safe_psql('postgres', qq{
		INSERT INTO words SELECT id, w, w, CASE WHEN w = 'cháos' THEN w ELSE w || id END, ARRAY[w] FROM
		  (SELECT row_number() OVER (ORDER BY a COLLATE "C", b COLLATE "C") AS id, a || b AS w
		   FROM unnest(ARRAY['ch', 'Ch', 'h', 'c', 'cz', 'd', 'H', 'čh']) a, unnest(ARRAY['áos', 'aos', 'áoš', '-os', '', E'\\t', 'Aos', E'a\\u0301os']) b) w
		WHERE id BETWEEN $from AND $to});
	return;
}
add(1, 30);
$primary->safe_psql('postgres', 'CHECKPOINT');
add(31, 64);
$primary->safe_psql('postgres', "UPDATE words SET w = upper(w) WHERE id % 5 = 0; DELETE FROM words WHERE id % 9 = 0 AND n <> 'cháos'");
looks_right($primary, 'before a crash');
ok(!ch_is_behind_h($primary), 'English order');
crash($primary);
looks_right($primary, 'replayed');
wait_replayed($primary, $standby);
looks_right($standby, 'on the standby');
$primary->append_conf('postgresql.conf', "mot.warm_restart = on\n");
$primary->restart;
looks_right($primary, 'loaded');

# Another order while the server runs: who has the old one goes on, a new process is refused.
my $old = $primary->background_psql('postgres');
$old->query_safe("SELECT count(*) FROM words WHERE w > 'a'");
install_locale('cs_CZ');
my $refused = qr/has keys in an order of texts that this process does not have/;
for my $statement ("SELECT count(*) FROM words WHERE w > 'a'", "INSERT INTO words (id, w) VALUES (1000, 'a')", "UPDATE words SET w = 'b' WHERE id = 1")
{
	like(($primary->psql('postgres', $statement))[2], $refused, "refused: $statement");
}
$old->query_safe("INSERT INTO words (id, w) VALUES (1001, 'chosen')");
$old->quit;
$primary->restart;
like(slurp_file($primary->logfile), qr/a collation orders texts otherwise than before/, 'no warm restart over another order');
looks_right($primary, 'in another order');
ok(ch_is_behind_h($primary), 'Czech order');
$primary->restart;
looks_right($primary, 'after a warm restart');
$primary->safe_psql('postgres', "DELETE FROM words WHERE id = 1001");
wait_replayed($primary, $standby);

# The standby replays with the locale that its processes had, until it starts anew.
$standby->restart;
looks_right($standby, 'in the order of the standby');
ok(ch_is_behind_h($standby), 'Czech order on the standby');

# A machine without the locale: the server starts, keys are kept, and core says what is missing.
remove_locale();
crash($primary);
is($primary->safe_psql('postgres', "SELECT count(*) FROM words WHERE id < 20"), '17', 'tables load without the locale');
like(($primary->psql('postgres', "SELECT * FROM words WHERE w > 'a'"))[2], qr/could not create locale/, 'core says what is missing');
install_locale('en_US');
like(($primary->psql('postgres', "INSERT INTO words (id, w) VALUES (1000, 'a')"))[2], $refused, 'until the next start');
$primary->restart;
looks_right($primary, 'with the locale again');
wait_replayed($primary, $standby);
$primary->stop('immediate');
promote($standby);
$standby->restart;
looks_right($standby, 'after a promotion');

no_crash($standby);
done_testing();
