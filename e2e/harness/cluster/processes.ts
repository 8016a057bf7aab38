/** Processes in pods that get a signal, for stories and soaks about faults. */
import { kubectl } from './cluster.ts';

/** Runs a script in a container of a pod. */
export async function sh(namespace: string, pod: string, container: string, script: string): Promise<string> {
  return (await kubectl(['-n', namespace, 'exec', pod, '-c', container, '--', 'sh', '-c', script])).trim();
}

/**
 * Sends a signal to the process that serves in worker-0: the youngest that runs Node.js, the oldest is the supervisor.
 */
export function signalWorker(namespace: string, pod: string, signal: string): Promise<string> {
  const script = `node=$(readlink /proc/1/exe)
    for pid in $(ls /proc | grep -E '^[0-9]+$' | sort -n); do
      [ "$(readlink /proc/$pid/exe)" != "$node" ] || last=$pid
    done
    [ $last != 1 ] && kill -s ${signal} $last`;
  return sh(namespace, pod, 'worker-0', script);
}

/** Kills a process of a proxy by its name; of several the oldest, or the youngest. */
export function killProxy(
  namespace: string,
  pod: string,
  name: 'haproxy' | 'nginx',
  which: 'head' | 'tail',
): Promise<string> {
  const script = `pids=$(for pid in $(ls /proc | grep -E '^[0-9]+$' | sort -n); do
      [ "$(cat /proc/$pid/comm 2>/dev/null)" != ${name} ] || echo $pid
    done)
    kill -s KILL $(echo "$pids" | ${which} -n 1)`;
  return sh(namespace, pod, name, script);
}
