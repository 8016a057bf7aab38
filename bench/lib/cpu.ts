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
