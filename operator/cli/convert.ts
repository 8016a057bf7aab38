/** `corelane convert`: a Deployment, and what stands around it, as a RenderService. */
import { parseArgs } from 'node:util';
import { type Finding, sorted } from '../check/finding.ts';
import type { Surroundings } from '../check/workload.ts';
import { type Conversion, convert, isDeployment, isOpen, refusedKind } from '../convert/index.ts';
import type { Manifest } from '../convert/manifests.ts';
import type { Command } from './command.ts';
import { findingLine, placeOf, summary } from './findings.ts';
import { imageConfigs } from './image-config.ts';
import { json } from './json.ts';
import { asUsageError, DEPLOYMENT_KINDS, objectName, readManifests } from './manifest-files.ts';
import { wholeOf } from './options.ts';
import { imagesOf, nodesOf } from './subject.ts';
import { UsageError } from './usage.ts';
import { visible, visibleLines } from './visible.ts';

const help = `
Usage: corelane convert -f FILE [-f FILE ...] [deployment/NAME] [OPTIONS]
       corelane convert deployment/NAME [-n NAMESPACE] [OPTIONS]

Writes a RenderService out of a Deployment, and of the Service, Ingress, HorizontalPodAutoscaler, ScaledObject, VPA,
PodDisruptionBudget, NetworkPolicies, claims and LimitRanges that are given with it. Without -f the objects are read from
the cluster.

The YAML goes to standard output; to standard error what became of every field that is not in it, what to decide, and
the commands that move traffic. Nothing is applied. Nothing is written where the move would open what is closed, or
delete what has to stay. docs/check.md explains the codes, docs/convert.md the way.

  -f, --file FILE          YAML or JSON, with any number of objects; - is standard input
      --name NAME          of the RenderService (that of the Deployment)
  -n, --namespace N        namespace (of the kubeconfig's context; with -f as the files say)
      --container NAME     the container that renders (the only one, or what looks like it)
      --workers-per-pod N  a number, or auto: what fits a node best (as many as the container asks for CPUs)
      --node-cpu N         vCPUs of a node, for what fits on it
  -o, --output json        findings and plan as JSON, on standard error
      --strict             warnings count like what is to be decided

Exit code: 0; 2 where something is to be decided, or does not work (with --strict also for warnings); 64 for options and
files that cannot be used; else 1.
`;

/** Something is to be decided first. */
const EXIT_OPEN = 2;

const WORKERS = { min: 1, max: 64 };

export const command: Command = {
  summary: 'write a RenderService out of a Deployment',
  help,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        file: { type: 'string', short: 'f', multiple: true, default: [] },
        name: { type: 'string' },
        namespace: { type: 'string', short: 'n' },
        container: { type: 'string' },
        'workers-per-pod': { type: 'string' },
        'node-cpu': { type: 'string' },
        output: { type: 'string', short: 'o' },
        strict: { type: 'boolean', default: false },
      },
    });
    const [target, ...rest] = positionals;
    if (rest.length > 0) throw new UsageError(`one Deployment at a time, not also ${rest.join(', ')}`);
    if (values.output !== undefined && values.output !== 'json') throw new UsageError('-o must be json');
    const wanted = target === undefined ? undefined : objectName(target, DEPLOYMENT_KINDS).name;
    if (values.file.length === 0 && wanted === undefined)
      throw new UsageError('-f FILE or deployment/NAME is needed; see corelane convert --help');
    const workers = values['workers-per-pod'];
    const workersPerPod = workersOf(workers);
    const input = await inputOf(values.file, wanted, values.namespace);
    const nodes = values['node-cpu'] === undefined ? input.nodes : nodesOf(values['node-cpu']);
    const { deployment } = input;
    if (!deployment) return sayRefused(input.refused, input.manifests, values.output === 'json');
    const others = input.manifests.filter((manifest) => manifest !== deployment);
    const images = await imageConfigs(imagesOf(deployment));
    const { name, container } = values;
    const namespace = values.namespace ?? input.namespace;
    const options = { name, namespace, container, workersPerPod, nodes, images, unread: input.unread };
    const conversion = asUsageError(() => convert(deployment, others, options));
    if (values.output === 'json') console.error(asJson(conversion, input.manifests));
    else console.error(asText(conversion, input.manifests, `Deployment/${deployment.name}`));
    const { text } = conversion;
    if (text !== undefined) process.stdout.write(process.stdout.isTTY ? visibleLines(text) : text);
    return isOpen(conversion.findings, values.strict) ? EXIT_OPEN : 0;
  },
};

function workersOf(text: string | undefined): number | 'auto' | undefined {
  if (text === undefined || text === 'auto') return text;
  return wholeOf('workers-per-pod', text, WORKERS);
}

interface Input {
  manifests: Manifest[];
  deployment?: Manifest;
  /** Where there is no Deployment: what is there instead. */
  refused: Finding[];
  nodes?: Surroundings['nodes'];
  namespace?: string;
  /** Kinds that may not be listed. */
  unread?: string[];
}

async function inputOf(files: string[], wanted: string | undefined, namespace: string | undefined): Promise<Input> {
  if (files.length === 0) {
    // Loaded only where it is needed: it brings the Kubernetes client along (0.6 s).
    const { readDeployment } = await import('./cluster.ts');
    return { ...(await readDeployment(wanted as string, namespace)), refused: [] };
  }
  const manifests = readManifests(files);
  const deployments = manifests.filter((manifest) => isDeployment(manifest));
  const found = wanted === undefined ? deployments : deployments.filter(({ name }) => name === wanted);
  const names = deployments.map(({ name }) => `deployment/${name}`).join(' ');
  if (found.length > 1) throw new UsageError(`there are ${found.length} Deployments; name one of: ${names}`);
  if (found.length === 0 && wanted !== undefined)
    throw new UsageError(`there is no Deployment ${wanted}${names === '' ? '' : `; there are ${names}`}`);
  const refused = manifests.flatMap((manifest) => refusedKind(manifest) ?? []);
  if (found.length === 0 && refused.length === 0) throw new UsageError(`no Deployment in ${files.join(', ')}`);
  return { manifests, deployment: found[0], refused };
}

function sayRefused(findings: Finding[], manifests: Manifest[], isJson: boolean): number {
  if (isJson) console.error(asJson({ findings, plan: [], looked: [], skipped: [] }, manifests));
  else for (const finding of findings) console.error(findingLine(finding, manifests, ''));
  return EXIT_OPEN;
}

function asText({ findings, plan, withheld }: Conversion, manifests: Manifest[], main: string): string {
  const lines = sorted(findings).map((finding) => findingLine(finding, manifests, main));
  const written = withheld === undefined ? [] : [`Nothing is written: ${withheld}.`];
  const steps =
    plan.length === 0 ? [] : ['', 'Traffic plan (docs/convert.md):', ...plan.map((line) => `  ${visible(line)}`)];
  return [...lines, ...steps, '', ...written, `convert: ${summary(findings)} (docs/check.md has the codes)`].join('\n');
}

function asJson({ findings, plan, skipped, text }: Conversion, manifests: Manifest[]): string {
  const placed = sorted(findings).map((finding) => ({ ...finding, place: placeOf(finding, manifests) }));
  return json({ written: text !== undefined, findings: placed, skipped, plan });
}
