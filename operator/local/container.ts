/** A container of the plan as options of the engine's `run`. Computes only. */
import type { V1Container, V1EnvVar } from '@kubernetes/client-node';
import { quantityOf } from '../src/api/scalars.ts';
import type { RenderServiceSpec } from '../src/api/spec.ts';

/** The engine reads lines of 64 KiB at most. */
const LINE_BYTES_MAX = 60_000;

/**
 * Options, image and arguments for a worker container: command, environment, user, folder, memory limit, CPU limit, and
 * what Pod Security knows. left-out.ts says what is not there.
 */
export function containerArguments(container: V1Container): string[] {
  const { image = '', command = [], args = [], workingDir, resources, securityContext } = container;
  const [entrypoint, ...rest] = command;
  return [
    ...expanded(container.env ?? []).flatMap(({ name, value }) => ['--env', `${name}=${value}`]),
    ...(workingDir ? ['--workdir', workingDir] : []),
    ...memoryOptions(resources?.limits?.memory),
    ...(resources?.limits?.cpu ? ['--cpus', String(quantityOf(resources.limits.cpu))] : []),
    ...securityOptions(securityContext),
    ...(entrypoint === undefined ? [] : ['--entrypoint', entrypoint]),
    image,
    ...rest,
    ...args,
  ];
}

/**
 * Variables as a file for the engine's --env-file, which takes one line for each. What cannot stand in a line is left
 * to the options, where every user of the machine can read it while the container is being started.
 */
export function environmentFile({ env = [] }: V1Container): { file: string; rest: V1EnvVar[] } {
  const all = [...new Map(expanded(env).map((one) => [one.name, one])).values()];
  const isLine = ({ name, value }: { name: string; value: string }) =>
    /^[A-Za-z_][\w.-]*$/.test(name) && !/[\r\n]/.test(value) && Buffer.byteLength(value) < LINE_BYTES_MAX;
  const lines = all.filter(isLine).map(({ name, value }) => `${name}=${value}\n`);
  // What is written in a value is meant by now, and is not to be replaced again.
  const rest = all
    .filter((one) => !isLine(one))
    .map(({ name, value }) => ({ name, value: value.replaceAll('$', '$$$$') }));
  return { file: lines.join(''), rest };
}

/** A folder in memory for each emptyDir that a worker mounts; in a cluster the workers of a pod share it. */
export function emptyDirOptions({ template }: RenderServiceSpec, { volumeMounts = [] }: V1Container): string[] {
  const isEmptyDir = (name: string) =>
    template.spec?.volumes?.some((volume) => volume.name === name && volume.emptyDir);
  return volumeMounts
    .filter(({ name }) => isEmptyDir(name))
    .flatMap(({ mountPath }) => ['--tmpfs', `${mountPath}:mode=1777`]);
}

/** A memory limit without swap beside it, as kubelet sets it. */
export function memoryOptions(limit: string | undefined): string[] {
  if (limit === undefined) return [];
  const bytes = String(quantityOf(limit));
  return ['--memory', bytes, '--memory-swap', bytes];
}

function securityOptions(context: V1Container['securityContext']): string[] {
  if (!context) return [];
  const { runAsUser, runAsGroup, readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } = context;
  const group = runAsGroup === undefined ? '' : `:${runAsGroup}`;
  return [
    ...(runAsUser === undefined ? [] : ['--user', `${runAsUser}${group}`]),
    ...(readOnlyRootFilesystem ? ['--read-only'] : []),
    ...(allowPrivilegeEscalation === false ? ['--security-opt', 'no-new-privileges'] : []),
    ...(capabilities?.drop ?? []).flatMap((name) => ['--cap-drop', name]),
    ...(capabilities?.add ?? []).flatMap((name) => ['--cap-add', name]),
  ];
}

/**
 * Values with `$(NAME)` replaced by that of a variable before it, as kubelet does it; `$$(NAME)` stands for the bare
 * text. A variable without a value is left out.
 */
function expanded(env: V1EnvVar[]): { name: string; value: string }[] {
  const known = new Map<string, string>();
  return env.flatMap(({ name, value }) => {
    if (value === undefined) return [];
    const text = value.replace(/\$\$|\$\(([A-Za-z_.-][\w.-]*)\)/g, (whole, other) =>
      whole === '$$' ? '$' : (known.get(other) ?? whole),
    );
    known.set(name, text);
    return [{ name, value: text }];
  });
}
