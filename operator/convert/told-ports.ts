/** Ports that a container is told by its command line and its variables: `--http-address=:4180`, `PORT=3000`. */
import type { V1Container } from '@kubernetes/client-node';

type Told = Pick<V1Container, 'command' | 'args' | 'env'>;

interface Setting {
  name: string;
  value: string;
}

/** Flags and variables behind which a program finds where to listen. */
const LISTEN = /(^|[-_.])(listen|bind|address|addr|from|port|p)$/i;
/** Those by which servers of pages find their port. Others of an application may be ports of somebody before it. */
const OF_PAGES = /^((NITRO_|NUXT_)?PORT|-p|--?port)$/;
/** Those behind which it finds to whom it passes requests on. */
const UPSTREAM =
  /upstream|backend|target|origin|forward|(^|_)(app|node)_|(^|[-_])(reverse-proxy|proxy-?(to|pass|url|host)|to)$/i;
/** Listeners for other things than pages. */
const ASIDE = /metrics?|health|ready|admin|stats|status|debug|pprof|redirect|redis|database|db[-_]/i;

/** All words of the command line; a shell's line is one argument, so it is split as well. */
export function wordsOf({ command, args }: Told): string[] {
  return [...(command ?? []), ...(args ?? [])].flatMap((line) => String(line).split(/[\s;]+/)).filter(Boolean);
}

function settingsOf(container: Told): Setting[] {
  const words = wordsOf(container);
  const flags = words.map((word, index): Setting => {
    const [, name, value] = /^([\w.-]+)=(.*)$/.exec(word) ?? [];
    if (name !== undefined && value !== undefined) return { name, value };
    const next = words[index + 1] ?? '';
    return { name: word, value: word.startsWith('-') && !next.startsWith('-') ? next : '' };
  });
  return [...flags, ...(container.env ?? []).map(({ name, value }) => ({ name, value: value ?? '' }))];
}

function hasNumber(text: string, port: number): boolean {
  return (text.match(/[0-9]+/g) ?? []).some((digits) => Number(digits) === port);
}

/** Whether it is told to listen at a port. */
export function listensAt(container: Told, port: number): boolean {
  return settingsOf(container).some(
    ({ name, value }) => LISTEN.test(name) && !UPSTREAM.test(name) && !ASIDE.test(name) && hasNumber(value, port),
  );
}

/** Whether a server of pages is told to listen at a port. */
export function servesAt(container: Told, port: number): boolean {
  return settingsOf(container).some(({ name, value }) => OF_PAGES.test(name) && Number(value) === port);
}

/** Whether it is told to pass requests on to a port of its own pod. */
export function passesTo(container: Told, port: number): boolean {
  return settingsOf(container).some(
    ({ name, value }) => UPSTREAM.test(name) && isInPod(value) && hasNumber(value, port),
  );
}

/** An address of the pod itself, or a port without one. */
function isInPod(value: string): boolean {
  return /(^|[/@=,])(localhost|127(\.[0-9]+){3}|0\.0\.0\.0|\[::1?\]|:[0-9])|^[0-9]+$/i.test(value);
}
