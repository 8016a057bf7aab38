#!/usr/bin/perl
# Runs the reaper with a worker that leaves a process behind, of which somebody else, a debugger, wants to know how it ends: until then
# nobody can reap it. Says how the reaper has ended, and in what state that process is then. Gives up after 20 s.
use strict;
use warnings;
use POSIX qw(uname);

my $REAPER = '/usr/share/corelane/runtime/reaper';
my %PTRACE = (x86_64 => 101, aarch64 => 117);
my $PTRACE_SEIZE = 0x4206;

$SIG{ALRM} = sub { print "still there after 20 s\n"; exit };
alarm 20;
pipe(my $said, my $says) or die;
pipe(my $ends, my $end) or die;
my $reaper = fork() // die;
if (!$reaper) {
  close $end;
  open STDIN, '<&', $ends or die;
  open STDOUT, '>&', $says or die;
  exec $REAPER, '/bin/sh', 'sh', '-c', 'sleep 1000 </dev/null >/dev/null & echo $!; read -r _; exit 7';
}
close $says;
close $ends;
my $left = readline $said;
chomp $left;
syscall($PTRACE{(uname())[4]}, $PTRACE_SEIZE, $left + 0, 0, 0) == 0 or die "ptrace: $!";
close $end;
waitpid $reaper, 0;
my $code = $? >> 8;
open my $stat, '<', "/proc/$left/stat" or die "it has gone\n";
my ($state) = readline($stat) =~ /\) (\S)/;
print "ended with $code, left $state\n";
