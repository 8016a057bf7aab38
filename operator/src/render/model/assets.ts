/** What nginx serves from the application's image, and who answers for what it has not. */
import { ASSETS_MOUNT_PATH } from '../../api/names.ts';
import { assetsOf } from '../../api/presets.ts';
import { durationMs } from '../../api/scalars.ts';
import type { Asset } from '../../api/spec/assets.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';
import type { Pooling } from './pooling.ts';

/**
 * Who is asked for what nginx has not got: a worker, as for any page; a worker, and nobody keeps its 404; nobody, it is
 * 404; a pod of another revision first.
 */
export type Next = 'page' | 'worker' | 'nobody' | 'otherThenWorker' | 'otherThenNobody';

export interface Assets {
  folders: AssetFolder[];
  /** Of these the one that is the whole site: it takes what no other location does. */
  site?: AssetFolder;
  /** The others. */
  below: AssetFolder[];
  /** Whom anybody is sent to. */
  next: Record<Next, boolean>;
  /** Files that change under their names although their folder is immutable. */
  mutable: string[];
  /** Whether a pod asks one of another revision for what it has not: there are immutable files, and pods that talk. */
  asksOtherRevisions: boolean;
  /** Whether a folder has files with a hash in their names, and others that are not meant. */
  hasHashedNames: boolean;
  /** Files that nginx keeps open. */
  openFilesMax: number;
  /** Parts of a file that one request may ask for. */
  rangesMax: number;
}

export interface AssetFolder {
  /** Begin of the URLs. */
  path: string;
  /** Where the files are: the folder that has the path of the URL below it. */
  root: string;
  isHashedOnly: boolean;
  isImmutable: boolean;
  maxAgeSeconds: number;
  /** Names and values. */
  headers: [string, string][];
  next: Next;
  /** The same for a file that changes: another revision has another one. */
  nextOfMutable: Next;
  /** Whether pods of another revision may have its files. */
  isForPeers: boolean;
}

/** A file that is open costs 1 kB, and one of the files that the container may open. */
const OPEN_FILES_MAX = 1_000;
/** A reader of a PDF asks for some. Each is a head and a seek; nginx itself refuses only what is more than the file. */
const RANGES_MAX = 16;

/**
 * The folder with the files of entry number `index`. Each has its own: a mounted image can have nothing mounted in it.
 */
export function assetRoot(index: number): string {
  return `${ASSETS_MOUNT_PATH}/${index}`;
}

/** What is served for a defaulted spec; undefined if nothing is. */
export function assets(spec: RenderServiceSpec, pooling: Pooling | undefined): Assets | undefined {
  const wanted = assetsOf(spec);
  if (wanted.length === 0) return undefined;
  const folders = wanted.map((asset, index) => folder(asset, index, pooling?.handsOver ?? false));
  return {
    folders,
    site: folders.find(isSite),
    below: folders.filter((one) => !isSite(one)),
    next: locations(folders),
    mutable: [...new Set(wanted.flatMap(({ mutable }) => mutable))],
    asksOtherRevisions: folders.some(({ isForPeers }) => isForPeers),
    hasHashedNames: folders.some(({ isHashedOnly }) => isHashedOnly),
    openFilesMax: OPEN_FILES_MAX,
    rangesMax: RANGES_MAX,
  };
}

function isSite({ path }: AssetFolder): boolean {
  return path === '/';
}

/** A request that another revision cannot help goes on; one that is for no file is always a page. */
function locations(folders: AssetFolder[]): Record<Next, boolean> {
  const isUsed = (next: Next) => folders.some((one) => one.next === next || one.nextOfMutable === next);
  const [otherThenWorker, otherThenNobody] = [isUsed('otherThenWorker'), isUsed('otherThenNobody')];
  return {
    page: true,
    worker: otherThenWorker || isUsed('worker'),
    nobody: otherThenNobody || isUsed('nobody'),
    otherThenWorker,
    otherThenNobody,
  };
}

function folder(asset: Asset, index: number, handsOver: boolean): AssetFolder {
  const { path, immutable, missing } = asset;
  const isForPeers = immutable && handsOver;
  return {
    path,
    root: assetRoot(index),
    isHashedOnly: asset.hashedNames,
    isImmutable: immutable,
    maxAgeSeconds: Math.floor(durationMs(asset.maxAge) / 1_000),
    headers: Object.entries(asset.headers),
    next: missing === 'Worker' ? toWorker(immutable, isForPeers) : isForPeers ? 'otherThenNobody' : 'nobody',
    nextOfMutable: missing === 'Worker' ? 'page' : 'nobody',
    isForPeers,
  };
}

function toWorker(isImmutable: boolean, isForPeers: boolean): Next {
  if (isForPeers) return 'otherThenWorker';
  return isImmutable ? 'worker' : 'page';
}
