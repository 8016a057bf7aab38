/** `corelane check`: what is known to go wrong with RenderServices and Deployments, in files or in a cluster. */
import { parseArgs } from 'node:util';
import { type Finding, reaches } from '../check/finding.ts';
import { checkRenderService, type Report } from '../check/index.ts';
import { LEVELS, type Level } from '../check/levels.ts';
import type { Surroundings } from '../check/workload.ts';
import { convert, isDeployment, refusedKind } from '../convert/index.ts';
import type { Manifest } from '../convert/manifests.ts';
import { isRenderService, surroundingsOf } from '../convert/surroundings.ts';
import { KIND, NAME_LENGTH_MAX } from '../src/api/names.ts';
import type { RenderServiceResource } from '../src/api/resource.ts';
import type { Command } from './command.ts';

import { checklist, placeOf, summary } from './findings.ts';
import { imageConfigs } from './image-config.ts';
import { json } from './json.ts';
import { asUsageError, DEPLOYMENT_KINDS, objectName, readManifests } from './manifest-files.ts';
import { imagesOf, nodesOf, type Subject } from './subject.ts';
import { UsageError } from './usage.ts';
import { visible } from './visible.ts';

const help = `
Usage: corelane check -f FILE [-f FILE ...] [OPTIONS]
       corelane check [renderservice/NAME | deployment/NAME] [-n NAMESPACE] [OPTIONS]

Looks for what is known to go wrong in RenderServices, and in Deployments that are to become some. Without -f in the
cluster: in one, or in all RenderServices of the namespace. Nothing is changed. docs/check.md explains the codes.
With --server also what the cluster would refuse: its policies, quotas, LimitRanges, and names that are taken.

  -f, --file FILE          YAML or JSON, with any number of objects; - is standard input
  -n, --namespace N        namespace (of the kubeconfig's context)
      --server             ask the API server about the RenderServices of -f, their objects and pods, by dry runs; for
                           pipelines. Needs "create" and "patch" on these; what you may not ask is skipped
      --node-cpu N         vCPUs of a node, for what fits on it (in a cluster: those of its nodes)
      --failure-threshold LEVEL
                           exit code 2 from this level on: info, warning, decide or error (decide)
  -o, --output json        as JSON

A cluster is read as far as your rights go: RenderServices; nodes, limitranges, pods, services, ingresses, autoscalers,
claims, NetworkPolicies where they may be listed.

Exit code: 0; 2 where a finding reaches the threshold; 64 for options and files that cannot be used; else 1.
`;

/** A finding is as bad as the threshold, or worse. */
const EXIT_FOUND = 2;

/** `check` converts a Deployment under its own name and this suffix, so that old and new Services do not collide. */
const SUFFIX = '-render';

const KINDS = {
  ...DEPLOYMENT_KINDS,
  renderservice: KIND,
  renderservices: KIND,
  rsvc: KIND,
  'renderservice.corelane.dev': KIND,
};

export const command: Command = {
  summary: 'look for what is known to go wrong in a RenderService or Deployment',
  help,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        file: { type: 'string', short: 'f', multiple: true, default: [] },
        namespace: { type: 'string', short: 'n' },
        server: { type: 'boolean', default: false },
        'node-cpu': { type: 'string' },
        'failure-threshold': { type: 'string', default: 'decide' },
        output: { type: 'string', short: 'o' },
      },
    });
    const threshold = values['failure-threshold'].toLowerCase() as Level;
    if (!LEVELS.includes(threshold)) throw new UsageError(`--failure-threshold must be one of ${LEVELS.join(', ')}`);
    if (values.output !== undefined && values.output !== 'json') throw new UsageError('-o must be json');
    const [target, ...rest] = positionals;
    if (rest.length > 0) throw new UsageError(`one object at a time, not also ${rest.join(', ')}`);
    if (values.server && values.file.length === 0) throw new UsageError('--server is about files: give them with -f');
    const wanted = target === undefined ? undefined : objectName(target, KINDS);
    const nodes = values['node-cpu'] === undefined ? undefined : nodesOf(values['node-cpu']);
    const { subjects, refused } =
      values.file.length > 0 ? ofFiles(values.file, wanted) : await ofCluster(wanted, values.namespace);
    if (values.server) await askAbout(subjects, values.namespace);
    const images = await imageConfigs(subjects.flatMap(({ manifest }) => imagesOf(manifest)));
    const reports = subjects.map((subject) => ({
      subject,
      report: asUsageError(() => reportOn(subject, { images, ...(nodes && { nodes }) })),
    }));
    const findings = [...refused, ...reports.flatMap(({ report }) => report.findings)];
    console.log(values.output === 'json' ? asJson(reports, refused) : asText(reports, refused));
    return reaches(findings, threshold) ? EXIT_FOUND : 0;
  },
};

interface Wanted {
  kind?: string;
  name: string;
}

function ofFiles(files: string[], wanted: Wanted | undefined): { subjects: Subject[]; refused: Finding[] } {
  const manifests = readManifests(files);
  const isWanted = ({ kind, name }: Manifest) =>
    wanted === undefined || (name === wanted.name && kind === (wanted.kind ?? kind));
  const found = manifests.filter((one) => (isRenderService(one) || isDeployment(one)) && isWanted(one));
  const refused = found.length > 0 ? [] : manifests.filter(isWanted).flatMap((one) => refusedKind(one) ?? []);
  if (found.length + refused.length === 0)
    throw new UsageError(`no RenderService or Deployment${wanted ? ` ${wanted.name}` : ''} in ${files.join(', ')}`);
  const subjects = found.map((manifest) => {
    const others = manifests.filter((one) => one !== manifest && !isDeployment(one) && !isRenderService(one));
    return { manifest, others, known: {} };
  });
  return { subjects, refused };
}

/** Of Deployments nothing is asked: they are to become something else. */
async function askAbout(subjects: Subject[], namespace: string | undefined): Promise<void> {
  const { askServer } = await import('./ask-server.ts');
  for (const { manifest, known } of subjects)
    if (isRenderService(manifest)) known.server = await askServer(manifest, namespace);
}

async function ofCluster(wanted: Wanted | undefined, namespace: string | undefined) {
  // Loaded only where it is needed: it brings the Kubernetes client along (0.6 s).
  const { readSubjects } = await import('./cluster.ts');
  return { subjects: await readSubjects(wanted, namespace), refused: [] };
}

function reportOn({ manifest, others, known }: Subject, given: Partial<Surroundings>): Report {
  const about = { ...known, ...given };
  if (isDeployment(manifest)) {
    const { nodes, images } = about;
    // As if it had a name of its own: what to call it is asked when it is converted.
    const name = `${manifest.name.slice(0, NAME_LENGTH_MAX - SUFFIX.length)}${SUFFIX}`;
    return convert(manifest, others, { name, nodes, images });
  }
  const surroundings = { ...surroundingsOf(manifest, others), ...about };
  return checkRenderService(manifest.value as unknown as RenderServiceResource, surroundings);
}

interface Checked {
  subject: Subject;
  report: Report;
}

function title({ manifest: { kind, name, file, value } }: Subject): string {
  const { namespace } = (value.metadata ?? {}) as { namespace?: string };
  return visible(`${kind}/${name}${namespace ? ` in ${namespace}` : ''} (${file})`);
}

function asText(checked: Checked[], refused: Finding[]): string {
  const blocks = checked.map(({ subject, report }) => {
    const { manifest, others } = subject;
    const main = `${manifest.kind}/${manifest.name}`;
    return `${title(subject)}\n${checklist(report, [manifest, ...others], main)}\n`;
  });
  const kinds = refused.map(
    ({ code, object, what, why, wayOut }) =>
      `${visible(object)}\n  error    ${code}  ${visible(`${what}. ${why}. ${wayOut}`)}\n`,
  );
  const all = [...refused, ...checked.flatMap(({ report }) => report.findings)];
  const skipped = checked.flatMap(({ report }) => report.skipped).length;
  const more = skipped > 0 ? `, ${skipped} could not be looked at` : '';
  return [...blocks, ...kinds, `check: ${summary(all)}${more} (docs/check.md has the codes)`].join('\n');
}

function asJson(checked: Checked[], refused: Finding[]): string {
  const objects = checked.map(({ subject: { manifest, others }, report }) => ({
    object: `${manifest.kind}/${manifest.name}`,
    namespace: (manifest.value.metadata as { namespace?: string }).namespace,
    file: manifest.file,
    findings: report.findings.map((finding) => ({ ...finding, place: placeOf(finding, [manifest, ...others]) })),
    skipped: report.skipped,
  }));
  const kinds = refused.map((finding) => ({ object: finding.object, findings: [finding], skipped: [] }));
  return json([...objects, ...kinds]);
}
