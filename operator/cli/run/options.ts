/** The arguments of `corelane run`. */
import { existsSync, statSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { V1EnvVar } from '@kubernetes/client-node';
import { IMAGE } from '../../local/documents.ts';
import { envOfFile } from '../../local/env.ts';
import type { EngineName } from '../../local/find-engine.ts';
import { INPUT_BYTES_MAX, textOf } from '../../local/text-file.ts';
import { WORKERS_PER_POD_MAX } from '../../src/api/names.ts';
import { numberOf, wholeOf } from '../options.ts';
import { UsageError } from '../usage.ts';

/** More would be a load test; that wants another machine. */
const LOAD_MAX = 1_000;
/** With --chaos and no --load: enough that each fault meets somebody. */
const CHAOS_LOAD = 10;
const PODS_MAX = 20;

export interface RunOptions {
  /** File or folder. */
  path: string;
  isFolder: boolean;
  pods: number;
  workers?: number;
  port: number;
  image?: string;
  env: V1EnvVar[];
  /** Names beside those of this machine by which it may be asked. */
  allowedHosts: string[];
  watch: boolean;
  /** Requests a second; 0: none. */
  load: number;
  chaos: boolean;
  /** Says at once where the page of `corelane dashboard` is. */
  dashboard: boolean;
  logs: boolean;
  engine?: EngineName;
}

/** @throws UsageError for what cannot be used */
export function runOptions(args: string[]): RunOptions {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      pods: { type: 'string', default: '1' },
      workers: { type: 'string' },
      port: { type: 'string', default: '8080' },
      image: { type: 'string' },
      env: { type: 'string', multiple: true, default: [] },
      'env-file': { type: 'string', multiple: true, default: [] },
      'allowed-host': { type: 'string', multiple: true, default: [] },
      watch: { type: 'boolean', default: false },
      load: { type: 'string' },
      chaos: { type: 'boolean', default: false },
      dashboard: { type: 'boolean', default: false },
      'quiet-logs': { type: 'boolean', default: false },
      engine: { type: 'string' },
    },
  });
  const [path, ...rest] = positionals;
  if (path === undefined || rest.length > 0)
    throw new UsageError('one file with a RenderService, or one folder, is needed; see corelane run --help');
  if (!existsSync(path)) throw new UsageError(`there is no file or folder ${path}`);
  const isFolder = statSync(path).isDirectory();
  if (values.watch && !isFolder)
    throw new UsageError('--watch needs a folder: an image does not change; [r] reads the file again');
  return {
    path,
    isFolder,
    pods: wholeOf('pods', values.pods, { min: 1, max: PODS_MAX }),
    ...(values.workers !== undefined && {
      workers: wholeOf('workers', values.workers, { min: 1, max: WORKERS_PER_POD_MAX }),
    }),
    port: wholeOf('port', values.port, { min: 1, max: 65_535 }),
    image: imageOf(values.image),
    env: [...values['env-file'].flatMap(fileEnv), ...values.env.map(oneEnv)],
    allowedHosts: values['allowed-host'],
    watch: values.watch,
    load: numberOf('load', values.load ?? (values.chaos ? String(CHAOS_LOAD) : '0'), { min: 0, max: LOAD_MAX }),
    chaos: values.chaos,
    dashboard: values.dashboard,
    logs: !values['quiet-logs'],
    engine: engineOf(values.engine),
  };
}

function imageOf(text: string | undefined): string | undefined {
  if (text === undefined || IMAGE.test(text)) return text;
  throw new UsageError(`--image must be the name of an image, not "${text}"`);
}

function oneEnv(text: string): V1EnvVar {
  const [, name, value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined) throw new UsageError(`--env must be NAME=VALUE, not "${text}"`);
  return { name, value };
}

function fileEnv(path: string): V1EnvVar[] {
  if (!existsSync(path)) throw new UsageError(`--env-file: there is no file ${path}`);
  if (statSync(path).isDirectory()) throw new UsageError(`--env-file: ${path} is a folder`);
  const text = textOf(path, INPUT_BYTES_MAX);
  if (text === undefined) throw new UsageError(`--env-file: ${path} has more than ${INPUT_BYTES_MAX / 1024 ** 2} MB`);
  return envOfFile(text);
}

function engineOf(text: string | undefined): EngineName | undefined {
  if (text === undefined || text === 'docker' || text === 'podman') return text;
  throw new UsageError(`--engine must be docker or podman, not "${text}"`);
}
