/**
 * The processes of a worker as /proc shows them: found by the marker in their environment, even when nobody is their
 * parent.
 */
'use strict';

const { readdirSync, readFileSync, readlinkSync } = require('node:fs');

function read(file) {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return ''; // it has ended, or belongs to somebody else
  }
}

/**
 * Parent, state and CPU time of a process: the name between the parentheses may have blanks and parentheses of its own.
 */
function stat(pid) {
  const text = read(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, ppid] = fields;
  // Its own, and that of children that have ended. Linux tells programs in units of 10 ms.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { state, ppid: Number(ppid), cpuMs: 10 * ticks };
}

/** Processes, zombies excluded, whose environment has `entry` or that descend from one which has it. */
function withEnvironment(entry) {
  const all = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map((name) => ({ pid: Number(name), ...stat(name) }))
    .filter(({ pid, state }) => state && !'ZX'.includes(state) && pid !== process.pid);
  const found = new Set(
    all.filter(({ pid }) => `\0${read(`/proc/${pid}/environ`)}`.includes(`\0${entry}\0`)).map(({ pid }) => pid),
  );
  // A process may have thrown its environment away; a parent stands before or after its child.
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const { pid, ppid } of all) if (found.has(ppid)) found.add(pid);
  }
  return [...found];
}

/** A process and all below it. */
function treeOf(pid) {
  const all = readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map((name) => ({ pid: Number(name), ...stat(name) }));
  const found = new Set([pid]);
  for (let before = 0; before < found.size; ) {
    before = found.size;
    for (const one of all) if (found.has(one.ppid)) found.add(one.pid);
  }
  return all.filter((one) => found.has(one.pid));
}

/** CPU time of a process and of those below it, with those that have ended; NaN if it cannot be read. */
function cpuMs(pid) {
  try {
    return treeOf(pid).reduce((sum, one) => sum + one.cpuMs, 0);
  } catch {
    return Number.NaN; // this process may open no more files
  }
}

/** Kills the processes below `pid`, and leaves it alone itself. */
function killBelow(pid) {
  for (const { pid: below } of treeOf(pid)) {
    if (below === pid) continue;
    try {
      process.kill(below, 'SIGKILL');
    } catch {
      // It has just ended.
    }
  }
}

/** Whether nothing of a process runs any more. */
function hasEnded(pid) {
  const { state } = stat(pid);
  return !state || 'ZX'.includes(state);
}

/** Whether a process is stopped as a whole (SIGSTOP, a tracer). */
function isStopped(pid) {
  return 'Tt'.includes(stat(pid).state || ' ');
}

/**
 * What holds a process from outside of its program; undefined if nothing does. A tracer that only watches (a security
 * agent, strace) holds nothing: the process is not in the state "tracing stop".
 */
function holderOf(pid) {
  if (stat(pid).state === 't') return 'a debugger';
  return descriptors(pid).some((fd) => isSnapshot(pid, fd)) ? 'a heap snapshot' : undefined;
}

function descriptors(pid) {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    return []; // it has ended, or belongs to somebody else
  }
}

/** Whether a file is open for a heap snapshot: Node.js opens it before V8 begins. */
function isSnapshot(pid, fd) {
  try {
    if (!readlinkSync(`/proc/${pid}/fd/${fd}`).endsWith('.heapsnapshot')) return false;
  } catch {
    return false; // closed meanwhile
  }
  // The last octal digit has the mode: 0 reads only.
  return /^flags:\t[0-7]*[12]$/m.test(read(`/proc/${pid}/fdinfo/${fd}`));
}

/**
 * Whether this process, or one that `withEnvironment` finds, has the socket at one end of a connection of IPv4.
 * @param end address and port of that end, with a blank between them
 * @param otherEnd those of the other one
 */
function isSocketOf(entry, end, otherEnd) {
  const inode = inodeOf(end, otherEnd);
  if (inode === undefined) return false;
  try {
    return [process.pid, ...withEnvironment(entry)].some((pid) => hasOpen(pid, `socket:[${inode}]`));
  } catch {
    return false; // this process may open no more files
  }
}

function inodeOf(end, otherEnd) {
  const text = read('/proc/net/tcp');
  const at = text.indexOf(` ${inKernel(end)} ${inKernel(otherEnd)} `);
  if (at < 0) return undefined;
  // Both ends, state, queues, timer, retransmits, user, time-out, inode.
  return text.slice(at, text.indexOf('\n', at)).trim().split(/\s+/)[8];
}

/** As /proc/net/tcp has it: bytes of the address in the order of the machine, which is little-endian. */
function inKernel(end) {
  const [address, port] = end.split(' ');
  const hex = (number, digits) => Number(number).toString(16).toUpperCase().padStart(digits, '0');
  const bytes = address.split('.').map((byte) => hex(byte, 2));
  return `${bytes.reverse().join('')}:${hex(port, 4)}`;
}

function hasOpen(pid, file) {
  return descriptors(pid).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === file;
    } catch {
      return false; // closed meanwhile
    }
  });
}

/** Sends SIGKILL to all of them, children first, until none is left; those that it may not kill are left alone. */
function killAll(entry, spare = []) {
  const kept = new Set(spare);
  for (let round = 0; round < 10; round += 1) {
    const left = withEnvironment(entry).filter((pid) => !kept.has(pid));
    if (left.length === 0) return;
    for (const pid of left.reverse()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        kept.add(pid);
      }
    }
  }
}

function name(pid) {
  return read(`/proc/${pid}/comm`).trim();
}

module.exports = { cpuMs, hasEnded, holderOf, isSocketOf, isStopped, killAll, killBelow, name, withEnvironment };
