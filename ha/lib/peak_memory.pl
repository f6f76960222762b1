# peak_memory.pl DATADIR: until it is ended, how much memory of its own (anonymous: neither the
# arena nor shared buffers) each of the processes that recover had at most, the startup process with
# its threads and mot's workers, in kB. Those of a server that starts meanwhile, too. And what their
# titles said of a load.
use strict;
use warnings;
use Time::HiRes qw(usleep);

my ($data) = @ARGV;
my (%peak, %loads, $is_ended);
$SIG{TERM} = sub { $is_ended = 1 };
until ($is_ended)
{
	for my $pid (children())
	{
		my ($title, $more) = (one_line("/proc/$pid/cmdline") // '') =~ /(startup|mot [a-z]+) *([^\0]*)/ or next;
		$loads{"$title $more"} = 1 if $more =~ /^loading/;
		open(my $in, '<', "/proc/$pid/status") or next;
		my ($kb) = map { /^RssAnon:\s+(\d+) kB/ ? $1 : () } <$in>;
		$peak{$title} = $kb if defined $kb && $kb > ($peak{$title} // 0);
	}
	usleep(5_000);
}
print "$_: $peak{$_}\n" for sort keys %peak;
print "$_\n" for sort keys %loads;

sub children
{
	my $postmaster = one_line("$data/postmaster.pid") // '';
	$postmaster =~ s/\s//g;
	return split ' ', one_line("/proc/$postmaster/task/$postmaster/children") // '';
}

sub one_line
{
	my ($path) = @_;
	open(my $in, '<', $path) or return undef;
	return scalar <$in>;
}
