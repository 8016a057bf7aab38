/** The golden conversions: `NAME.in.yaml` with the options in its first line, `NAME.out.yaml`, `NAME.findings.txt`. */
import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { allocatableCpu } from '../../../check/cpu.ts';
import { type Conversion, type ConvertOptions, convert, isDeployment } from '../../../convert/index.ts';
import { type Manifest, parseManifests } from '../../../convert/manifests.ts';

export const GOLDEN = new URL('golden/', import.meta.url);

/** Names of all cases. */
export function goldenNames(): string[] {
  return readdirSync(GOLDEN)
    .filter((file) => file.endsWith('.in.yaml'))
    .map((file) => file.slice(0, -'.in.yaml'.length))
    .sort();
}

export function readGolden(file: string): string {
  return readFileSync(new URL(file, GOLDEN), 'utf8');
}

/** What the first line of a case asks for. */
function optionsOf(text: string): { wanted?: string; options: ConvertOptions } {
  const [, line = ''] = /^# corelane convert ?(.*)/.exec(text) ?? [];
  const { values, positionals } = parseArgs({
    args: line.split(' ').filter(Boolean),
    allowPositionals: true,
    options: {
      name: { type: 'string' },
      'workers-per-pod': { type: 'string' },
      'node-cpu': { type: 'string' },
    },
  });
  const workers = values['workers-per-pod'];
  const nodeCpu = values['node-cpu'];
  const nodes = nodeCpu && [{ cpu: allocatableCpu(Number(nodeCpu)), name: `a node of ${nodeCpu} vCPUs` }];
  return {
    wanted: positionals[0]?.replace('deployment/', ''),
    options: {
      name: values.name,
      workersPerPod: workers === undefined || workers === 'auto' ? workers : Number(workers),
      ...(nodes && { nodes }),
    },
  };
}

export interface GoldenCase {
  manifests: Manifest[];
  deployment?: Manifest;
  /** Undefined where there is no Deployment. */
  conversion?: Conversion;
}

/** Converts a case. @param changed options in place of those of its first line */
export function convertGolden(name: string, changed: ConvertOptions = {}): GoldenCase {
  const text = readGolden(`${name}.in.yaml`);
  const { wanted, options } = optionsOf(text);
  // The line of the options is not the user's.
  const manifests = parseManifests(text.replace(/^.*\n/, '\n'), `${name}.in.yaml`);
  const deployments = manifests.filter((manifest) => isDeployment(manifest));
  const deployment = wanted === undefined ? deployments[0] : deployments.find((one) => one.name === wanted);
  if (!deployment) return { manifests };
  const others = manifests.filter((manifest) => manifest !== deployment);
  return { manifests, deployment, conversion: convert(deployment, others, { ...options, ...changed }) };
}
