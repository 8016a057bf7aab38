/** What images say of themselves, where a container engine on this machine has them. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { ImageConfig } from '../check/workload.ts';

const run = promisify(execFile);
const ENGINES = ['docker', 'podman'];
/** A question to a local engine takes some 50 ms; one that hangs must not hold the command. */
const TIMEOUT_MS = 5_000;

/** A file may name a hundred thousand; each question is a process. */
const IMAGES_MAX = 100;
const AT_A_TIME = 8;

/** Configurations by image. One that is not here is left out: nothing is pulled. */
export async function imageConfigs(images: string[]): Promise<Record<string, ImageConfig>> {
  const asked = [...new Set(images)].slice(0, IMAGES_MAX);
  const found: (readonly [string, ImageConfig | undefined])[] = [];
  while (asked.length > 0)
    found.push(
      ...(await Promise.all(asked.splice(0, AT_A_TIME).map(async (image) => [image, await inspect(image)] as const))),
    );
  return Object.fromEntries(found.filter((entry): entry is [string, ImageConfig] => entry[1] !== undefined));
}

async function inspect(image: string): Promise<ImageConfig | undefined> {
  // A name that begins with "-" would be an option.
  if (!/^[\w]/.test(image)) return undefined;
  for (const engine of ENGINES) {
    try {
      const { stdout } = await run(engine, ['image', 'inspect', '--format', '{{json .Config}}', image], {
        timeout: TIMEOUT_MS,
        maxBuffer: 1024 ** 2,
      });
      return configOf(JSON.parse(stdout));
    } catch {
      // No such engine, not running, or the image is not there: then it is not known.
    }
  }
  return undefined;
}

function configOf(config: Record<string, unknown> | null): ImageConfig {
  const list = (value: unknown) =>
    Array.isArray(value) ? value.map(String) : typeof value === 'string' && value !== '' ? [value] : [];
  const ports = config?.ExposedPorts;
  return {
    env: list(config?.Env),
    entrypoint: list(config?.Entrypoint),
    cmd: list(config?.Cmd),
    exposedPorts: typeof ports === 'object' && ports !== null ? Object.keys(ports) : [],
  };
}
