# peak_memory.pl DATADIR: until it is ended, how much memory of its own (anonymous: neither the arena nor shared buffers) each of the processes that recover had at
# most, the startup process with its threads and mot's workers, in kB. Those of a server that starts meanwhile, too.
use strict;
use warnings;
use Time::HiRes qw(usleep);

my ($data) = @ARGV;
my (%peak, $is_ended);
$SIG{TERM} = sub { $is_ended = 1 };
until ($is_ended)
{
	for my $pid (children())
	{
		my ($title) = (one_line("/proc/$pid/cmdline") // '') =~ /(startup|mot [a-z]+)/ or next;
		open(my $in, '<', "/proc/$pid/status") or next;
		my ($kb) = map { /^RssAnon:\s+(\d+) kB/ ? $1 : () } <$in>;
		$peak{$title} = $kb if defined $kb && $kb > ($peak{$title} // 0);
	}
	usleep(5_000);
}
print "$_: $peak{$_}\n" for sort keys %peak;

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
