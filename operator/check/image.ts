/** C013: whether the image has a Node.js that the worker runtime works in, and what it starts. */
import { RUNTIME_MOUNT_PATH, WORKER_LIVE_MOUNT_PATH } from '../src/api/names.ts';
import type { Finding } from './finding.ts';
import { commandField, commandLine, nodeOptionsOf, type Rule, type Workload, workerOf } from './workload.ts';

const NODE_MIN = { major: 18, minor: 19 };
/** Images of other programs that listen on a port of their own. */
const OTHERS =
  /^(nginx|nginx-unprivileged|httpd|apache|caddy|php|php-fpm|python|ruby|golang|openjdk|tomcat|redis|postgres|mysql|mongo)$/;
const WATCHERS =
  /(^|[\s/])(nodemon|ts-node-dev|next dev|nuxt dev|nuxi dev|vite|astro dev|npm run dev|yarn dev|pnpm dev)(\s|$)/;
const LAUNCHERS = /(^|[\s/])(npm|yarn|pnpm|npx)(\s|$)/;
/** From this major version on the permission model covers the network. Older versions refuse `--allow-net`. */
const ALLOW_NET_SINCE = 25;
const PERMISSION = /--(experimental-)?permission(\s|$)/;
/** Folders that the supervisor must be allowed to read: its own files, the live settings, /proc. */
const READ = [RUNTIME_MOUNT_PATH, WORKER_LIVE_MOUNT_PATH, '/proc'];
const OTHER_RUNTIMES = /^(\S*\/)?(bun|bunx|deno)(\s|$)/;

/** Last part of an image's name, and its tag. */
function nameAndTag(image: string): { name: string; tag: string } {
  const [, path = '', tag = ''] = /^(.*?)(?::([^/:@]+))?(?:@.*)?$/s.exec(image) ?? [];
  return { name: path.split('/').at(-1) ?? '', tag };
}

/** Version of Node.js, as the image or its name tells it; undefined where they do not. */
export function nodeVersion(workload: Workload, image: string): { major: number; minor?: number } | undefined {
  const set = workload.surroundings.images[image]?.env.find((entry) => entry.startsWith('NODE_VERSION='));
  const { name, tag } = nameAndTag(image);
  const text = set?.slice('NODE_VERSION='.length) ?? (name === 'node' ? tag : '');
  const [, major, minor] = /^v?([0-9]{1,3})(?:\.([0-9]{1,3}))?/.exec(text) ?? [];
  if (major === undefined) return undefined;
  return { major: Number(major), minor: minor === undefined ? undefined : Number(minor) };
}

function isTooOld({ major, minor }: { major: number; minor?: number }): boolean {
  return major < NODE_MIN.major || (major === NODE_MIN.major && minor !== undefined && minor < NODE_MIN.minor);
}

function* onImage(workload: Workload): Generator<Finding> {
  const { worker, path } = workerOf(workload);
  const image = worker.image ?? '';
  const at = { code: 'C013', object: workload.object, path: `${path}.image` } as const;
  const { name } = nameAndTag(image);
  const version = nodeVersion(workload, image);
  const config = workload.surroundings.images[image];
  if (version && isTooOld(version)) {
    yield {
      ...at,
      level: 'error',
      what: `Node.js ${version.major}${version.minor === undefined ? '' : `.${version.minor}`}`,
      why: `The worker runtime works from ${NODE_MIN.major}.${NODE_MIN.minor} on`,
      wayOut: 'Use a newer Node.js, or runtime.instrument: false.',
    };
  } else if (OTHERS.test(name)) {
    yield {
      ...at,
      level: 'error',
      what: `${name} is no Node.js program`,
      why: 'A worker is a server that listens on $PORT, and Corelane is there for those that render on a CPU',
      wayOut: 'Leave it in its Deployment, or choose the container that renders with --container.',
    };
  } else if (config && !version) {
    yield {
      ...at,
      level: 'info',
      what: 'the image does not say which Node.js it has (NODE_VERSION)',
      why: 'Without Node.js 18.19 or newer a stuck worker is not noticed',
      wayOut: 'Look with: docker run --rm --entrypoint node IMAGE --version.',
    };
  }
  const { runningImages = [], conditions } = workload.surroundings;
  if (runningImages.length > 1) {
    yield {
      ...at,
      level: 'warning',
      what: `workers run ${runningImages.length} different images of this name`,
      why: 'Its tag has moved, so pages differ from pod to pod',
      wayOut: 'Name images by a tag that never moves, or by digest.',
    };
  }
  const absent = conditions?.find(({ reason }) => reason === 'RuntimeAbsent');
  if (absent) {
    yield {
      ...at,
      level: 'info',
      what: absent.message.split(';')[0] ?? '',
      why: 'The operator has found it so (condition WorkersHealthy)',
      wayOut: 'See docs/runtime.md.',
    };
  }
}

/** Node.js' permission model keeps the supervisor from its work. */
function* onPermission(workload: Workload): Generator<Finding> {
  const { worker, path } = workerOf(workload);
  const options = nodeOptionsOf(workload);
  if (!workload.spec.runtime.instrument || !PERMISSION.test(options)) return;
  const { major = 0 } = nodeVersion(workload, worker.image ?? '') ?? {};
  const needed = ['--allow-child-process', ...(major >= ALLOW_NET_SINCE ? ['--allow-net'] : [])];
  const reads = (folder: string) => new RegExp(`--allow-fs-read[= ](\\*|/|${folder}(/\\S*)?)(\\s|$)`).test(options);
  const missing = [
    ...needed.filter((option) => !options.includes(option)),
    ...READ.filter((folder) => !reads(folder)).map((folder) => `--allow-fs-read=${folder}`),
  ].join(' ');
  if (missing === '') return;
  yield {
    code: 'C013',
    level: 'warning',
    object: workload.object,
    path: `${path}.${commandField(worker)}`,
    what: `Node.js runs with --permission and without ${missing}`,
    why: 'The worker runtime is off, or Node.js does not start (ERR_ACCESS_DENIED)',
    wayOut: `Add ${missing}, or set runtime.instrument: false.`,
  };
}

function* onCommand(workload: Workload): Generator<Finding> {
  const { worker, path } = workerOf(workload);
  const line = commandLine(worker, workload.surroundings.images[worker.image ?? '']);
  const at = { code: 'C013', object: workload.object, path: `${path}.${commandField(worker)}` } as const;
  if (WATCHERS.test(line)) {
    yield {
      ...at,
      level: 'warning',
      what: 'a program that watches files starts the server',
      why: 'It is for development: a changed file ends the worker in the middle of a render, and one that fails waits for a change',
      wayOut: 'Start the built server: node server.js.',
    };
  } else if (OTHER_RUNTIMES.test(line)) {
    yield {
      ...at,
      level: 'info',
      what: 'the server does not run in Node.js',
      why: 'It is served without the worker runtime: a stuck worker is not noticed, and has no metrics of its own',
      wayOut: 'Say runtime.instrument: false, and listen on HOST.',
    };
  } else if (LAUNCHERS.test(line)) {
    yield {
      ...at,
      level: 'info',
      what: 'a package manager starts the server',
      why: 'It works: the supervisor finds the server below it, at the price of one more process for each worker',
      wayOut: 'Nothing to do; node server.js in its place saves some 40 MB for each.',
    };
  }
}

export const imageRule: Rule = {
  codes: ['C013'],
  skipped(workload) {
    const image = workerOf(workload).worker.image ?? '';
    if (image in workload.surroundings.images || nodeVersion(workload, image)) return undefined;
    return 'the image is not on this machine (docker pull), and its name does not tell';
  },
  find: (workload) => [...onImage(workload), ...onCommand(workload), ...onPermission(workload)],
};
