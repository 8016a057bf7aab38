/** What the kernel lets this container have. Asked anew each time: it may be resized while it runs. */
'use strict';

const { readFileSync } = require('node:fs');
const { totalmem } = require('node:os');

const CPU_V2 = '/sys/fs/cgroup/cpu.max';
const CPU_V1 = '/sys/fs/cgroup/cpu/cpu.cfs_';
const MEMORY_EVENTS = ['/sys/fs/cgroup/memory.events', '/sys/fs/cgroup/memory/memory.oom_control'];

function numbersIn(path) {
  try {
    return readFileSync(path, 'latin1').trim().split(/\s+/).map(Number);
  } catch {
    return [];
  }
}

/** CPUs that the container may use at a time; undefined where nothing limits it. */
function cpuQuota() {
  let [quotaUs, periodUs] = numbersIn(CPU_V2); // "max 100000": no number
  if (quotaUs === undefined)
    [[quotaUs], [periodUs]] = [numbersIn(`${CPU_V1}quota_us`), numbersIn(`${CPU_V1}period_us`)];
  return quotaUs > 0 && periodUs > 0 ? quotaUs / periodUs : undefined;
}

/** Bytes of memory that the container may use; undefined where nothing limits it. */
function memoryLimitBytes() {
  const bytes = process.constrainedMemory?.() ?? 0;
  return bytes > 0 && bytes < totalmem() ? bytes : undefined;
}

/**
 * Processes of this container that the kernel has killed because its memory limit was reached. NaN where the kernel
 * does not tell.
 */
function oomKills() {
  for (const path of MEMORY_EVENTS) {
    try {
      return Number(/^oom_kill ([0-9]+)$/m.exec(readFileSync(path, 'latin1'))?.[1]);
    } catch {
      // The other version of cgroups.
    }
  }
  return Number.NaN;
}

module.exports = { cpuQuota, memoryLimitBytes, oomKills };
