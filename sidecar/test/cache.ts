/** Pages of worker.mjs that may be kept, and what a pod does with them. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Answer, type Call, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

/** Path of a page with this Cache-Control. */
export function page(id: string, control = 'max-age=60', more = ''): string {
  return `/?id=${id}&header=${encodeURIComponent(`Cache-Control:${control}`)}${more}`;
}

/** The same in a route of its own, so that what a pod learns of the page affects no other test. */
export function ownPage(id: string, control: string, more = ''): string {
  return `/${id}/x${page(id, control, more)}`;
}

/** How often a page has been rendered. */
export function renders(pod: Pod, id: string): number {
  return pod.events({ event: 'begin', id }).length;
}

/** Waits until so many stand in herds, beside those that go on for them. */
export async function waiters(pod: Pod, count: number): Promise<void> {
  await until(`${count} requests wait for a page`, async () => {
    const lines = await pod.metricLines('haproxy_server_current_queue');
    const herds = lines.filter((line) => line.includes('{proxy="herds",'));
    return herds.reduce((sum, line) => sum + Number(line.split(' ')[1]), 0) === count;
  });
}

/** So many requests for a page, of which all but one wait when this returns; the page is held. */
export async function herd(pod: Pod, path: string, count: number, call?: Call): Promise<Promise<Answer>[]> {
  const answers = Array.from({ length: count }, () => pod.get(path, call));
  await waiters(pod, count - 1);
  return answers;
}

/** What the cache says that it did. */
export function statusOf({ headers }: Answer): string | undefined {
  return headers['cache-status'] as string | undefined;
}

/** The statuses of these answers, each once. */
export function statuses(answers: Answer[]): number[] {
  return [...new Set(answers.map(({ status }) => status))].toSorted();
}

/** A request to nginx' server for the cache's figures, which only the pod itself reaches: status line and body. */
export async function ask(pod: Pod, method: string, path: string, header = ''): Promise<string> {
  const talk = `
    my $socket = IO::Socket::INET->new("127.0.0.1:${PORTS.figures}") or die "$!";
    print $socket "$ARGV[0] $ARGV[1] HTTP/1.0\\r\\n$ARGV[2]\\r\\n"; print $_ while <$socket>;`;
  const line = header && `${header}\r\n`;
  return docker('exec', pod.haproxy, 'perl', '-MIO::Socket::INET', '-e', talk, method, path, line);
}

/** Waits for so long: the end of a page is a matter of time. */
export async function seconds(count: number): Promise<void> {
  const since = performance.now();
  await until(`${count} s are over`, () => performance.now() - since > 1000 * count);
}
