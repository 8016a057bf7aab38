#!/bin/sh
# A stand-in for runc on machines whose root lacks CAP_SYS_RESOURCE (sandboxes,
# nested containers). There `docker run --privileged` asks for a capability that
# the kernel will not give and fails with "unable to apply caps". This drops the
# capability from what the engine asks for, and hands on to the real runc.
# Registered by engine.sh as the default runtime of its own daemon only.

command='' bundle=. process='' previous=''
for arg in "$@"; do
  case $previous in
    --bundle | -b) bundle=$arg ;;
    --process | -p) process=$arg ;;
  esac
  case $arg in
    create | run | exec) [ -n "$command" ] || command=$arg ;;
    --bundle=*) bundle=${arg#*=} ;;
    --process=*) process=${arg#*=} ;;
  esac
  previous=$arg
done

case $command in
  create | run) spec=$bundle/config.json ;;
  exec) spec=$process ;;
  *) spec= ;;
esac
if [ -n "$spec" ] && [ -f "$spec" ]; then
  sed -i 's/"CAP_SYS_RESOURCE",//g; s/,\{0,1\}"CAP_SYS_RESOURCE"//g' "$spec"
fi
exec runc "$@"
