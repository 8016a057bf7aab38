# A server without Node.js that keeps connections, and sends more than its Content-Length says: see plain.cjs.
use strict;
use warnings;
use IO::Socket::INET;
use POSIX ();

$SIG{CHLD} = 'IGNORE';
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ENV{PORT}, Listen => 16, ReuseAddr => 1) or die $!;
while (1) {
  my $client = $server->accept or next;
  next if fork;
  while (my $line = <$client>) {
    my ($target) = $line =~ /^\S+ (\S+)/;
    while (my $header = <$client>) { last if $header =~ /^\r?\n$/ }
    my %given = map { /^(\w+)=(.*)$/ ? ($1 => $2) : () } split /[?&]/, $target;
    my $more = $given{more} // '';
    $more =~ s/%([0-9A-F]{2})/chr hex $1/ge;
    open my $notes, '>>', $ENV{EVENTS} or die $!;
    print $notes qq({"worker":0,"pid":$$,"at":0,"event":"begin","id":"$given{id}","port":@{[$client->peerport]}}\n);
    close $notes;
    my $body = $given{length} ? 'x' x 10 : qq({"id":"$given{id}"});
    my $length = $given{length} // length $body;
    select undef, undef, undef, ($given{ms} // 0) / 1000;
    $client->print("HTTP/1.1 200 OK\r\nContent-Length: $length\r\n\r\n$body");
    $client->flush;
    select undef, undef, undef, 0.1 if $more;
    $client->print($more);
    $client->flush;
  }
  POSIX::_exit(0);
}
