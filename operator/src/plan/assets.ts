/**
 * How the files of `assets` get to nginx: an init container of the worker's image copies them into a volume, or nginx
 * mounts that image. docs/adr/0032-assets.md tells why the first is what one gets.
 */
import type { V1Container, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import { ASSETS_CONTAINER, ASSETS_MOUNT_PATH, RUNTIME_MOUNT_PATH, VOLUME_PREFIX } from '../api/names.ts';
import { assetsOf } from '../api/presets.ts';
import { quantityOf } from '../api/scalars.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { workerTemplate } from '../api/worker-template.ts';
import { assetRoot } from '../render/model/assets.ts';
import { RUNTIME_MOUNT } from './drain-hook.ts';
import { NO_TOKEN_MOUNT } from './proxies.ts';
import { initResources } from './resources.ts';
import { workerImageSecurity } from './users.ts';

const VOLUME = `${VOLUME_PREFIX}assets`;
/** Before a folder that may be in one of WORKDIR: of a preset, whose application may be a part of a monorepo. */
const HERE_OR_BELOW = '**/';
/** In the volume of the worker runtime: static, so it runs in every image. */
const COPY_PROGRAM = `${RUNTIME_MOUNT_PATH}/copy-assets`;

/** Whether an init container copies. */
function copiesAssets(spec: RenderServiceSpec): boolean {
  return assetsOf(spec).length > 0 && spec.sidecar.assets.source === 'Copy';
}

function worker({ template }: RenderServiceSpec): V1Container | undefined {
  return workerTemplate(template.spec?.containers ?? []);
}

/** The volume with the files. */
export function assetVolumes(spec: RenderServiceSpec): V1Volume[] {
  if (assetsOf(spec).length === 0) return [];
  if (copiesAssets(spec)) return [{ name: VOLUME, emptyDir: { sizeLimit: spec.sidecar.assets.sizeLimit } }];
  const { image, imagePullPolicy } = worker(spec) ?? {};
  // The same policy as that of the workers: they must not have another image than nginx.
  return [{ name: VOLUME, image: { reference: image, ...(imagePullPolicy && { pullPolicy: imagePullPolicy }) } }];
}

/** Mounts of nginx. */
export function assetMounts(spec: RenderServiceSpec): V1VolumeMount[] {
  const assets = assetsOf(spec);
  if (assets.length === 0) return [];
  if (copiesAssets(spec)) return [{ name: VOLUME, mountPath: ASSETS_MOUNT_PATH, readOnly: true }];
  return assets.map(({ path, from }, index) => ({
    name: VOLUME,
    mountPath: folderOf(path, index),
    subPath: inImage(from, worker(spec)?.workingDir),
    readOnly: true,
  }));
}

/** Copies the files, over what is there when the pod's sandbox was made anew. */
export function assetContainers(spec: RenderServiceSpec): V1Container[] {
  const template = worker(spec);
  return template && copiesAssets(spec) ? [assetContainer(spec, template)] : [];
}

/**
 * The container that copies. Of the worker's container it has what finds the files and may read them: image, folder
 * and user; and its resources. Nothing of its environment (NODE_OPTIONS, secrets) or of its volumes.
 * @param template the container that becomes the workers
 */
export function assetContainer(spec: RenderServiceSpec, template: V1Container): V1Container {
  const where = spec.assets ? '' : HERE_OR_BELOW;
  const folders = assetsOf(spec).flatMap(({ path, from }, index) => [folderOf(path, index), `${where}${from}`]);
  const { image, imagePullPolicy, workingDir } = template;
  return {
    name: ASSETS_CONTAINER,
    image,
    ...(imagePullPolicy && { imagePullPolicy }),
    ...(workingDir !== undefined && { workingDir }),
    command: [COPY_PROGRAM, String(Math.floor(quantityOf(spec.sidecar.assets.sizeLimit))), ...folders],
    resources: initResources(template),
    securityContext: workerImageSecurity(template),
    volumeMounts: [RUNTIME_MOUNT, { name: VOLUME, mountPath: ASSETS_MOUNT_PATH }, NO_TOKEN_MOUNT],
  };
}

function folderOf(path: string, index: number): string {
  return `${assetRoot(index)}${path}`.replace(/\/$/, '');
}

/** As a subPath, which begins at the root of the image. */
function inImage(from: string, workingDir = '/'): string {
  const path = from.startsWith('/') ? from : `${workingDir}/${from}`;
  return path.split('/').filter(Boolean).join('/');
}
