/** CPU time of containers, from the kernel's own accounts of their processes. */
import { docker } from '../../e2e/harness/engine/docker.ts';

/** USER_HZ, which Linux has fixed for everybody who reads /proc. */
const MS_PER_TICK = 10;

/** CPU time of all processes of a container so far, in ms. */
export async function cpuMs(container: string): Promise<number> {
  const options = ['--env', 'NODE_OPTIONS=', container];
  const lines = await docker('exec', ...options, 'sh', '-c', 'cat /proc/[0-9]*/stat 2>/dev/null || true');
  return lines.split('\n').reduce((sum, line) => sum + accountMs(line), 0);
}

/** The same to the microsecond, where the kernel keeps that (CONFIG_SCHED_INFO); without threads that have ended. */
export async function exactCpuMs(container: string): Promise<number> {
  const options = ['--env', 'NODE_OPTIONS=', container];
  const read = 'cat /proc/[0-9]*/task/[0-9]*/schedstat 2>/dev/null || true';
  const lines = (await docker('exec', ...options, 'sh', '-c', read)).split('\n').filter(Boolean);
  if (lines.length === 0) throw new Error('this kernel has no /proc/PID/task/TID/schedstat');
  return lines.reduce((sum, line) => sum + Number(line.split(' ')[0]) / 1e6, 0);
}

/**
 * CPU time in a line of /proc/PID/stat. The process's name, which may have blanks in it, stands between parentheses.
 */
export function accountMs(line: string): number {
  const fields = line
    .slice(line.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  return ((fields[11] ?? 0) + (fields[12] ?? 0)) * MS_PER_TICK;
}
