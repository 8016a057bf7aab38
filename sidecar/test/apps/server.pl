# A server without Node.js: one request at a time.
use strict;
use warnings;
use IO::Socket::INET;

my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ENV{PORT}, Listen => 16, ReuseAddr => 1) or die $!;
while (my $client = $server->accept) {
  while (my $line = <$client>) { last if $line =~ /^\r?\n$/ }
  print $client "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nperl";
  close $client;
}
