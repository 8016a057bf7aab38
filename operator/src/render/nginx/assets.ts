/**
 * Files of the application that nginx serves by itself. What it has not goes on: to a pod of another revision, to a
 * worker, or it is 404. docs/assets.md has the rules.
 */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { block, given, type Lines, paragraphs, when } from '../directives.ts';
import type { AccessLog } from '../model/access-log.ts';
import type { AssetFolder, Assets, Next } from '../model/assets.ts';
import { quoted, whole, word } from '../safe.ts';
import { BODY_ERRORS, FILE_ERRORS } from './errors.ts';
import { writesLines } from './logging.ts';
import { IGNORES_REDIRECTS } from './proxy.ts';

/** The compressed variants: brotli's module must come before the others are used, gzip's is built in. */
export const BROTLI_MODULE = 'load_module /usr/lib/nginx/modules/ngx_http_brotli_static_module.so;';

const IMMUTABLE = 'public, max-age=31536000, immutable';
const CHANGES = 'public, max-age=0';
/**
 * Of a pod of another revision: it has not got the file either, its nginx is full (420), the head is too large for it
 * with what this pod has added (422), or something is wrong. Not 400: nginx says that of a broken body, too, and a
 * worker would get the part of the body that is here.
 */
const NOT_THERE_EITHER = [403, 404, 420, 422, 429, 500, 502, 503, 504];

/** Who comes next: the name of the location, and what a variable that leads there is called. */
const NEXT: Record<Next, { location: string; variable: string }> = {
  page: { location: '@corelane_page', variable: 'page' },
  worker: { location: '@corelane_missing_asset', variable: 'worker' },
  nobody: { location: '@corelane_no_asset', variable: 'nobody' },
  otherThenWorker: { location: '@corelane_other_revision', variable: 'other' },
  otherThenNobody: { location: '@corelane_other_revision_only', variable: 'other_only' },
};

/** Maps, which go into `http`: which file a request is for, and what happens if it is not there. */
export function assetMaps(assets: Assets): Lines {
  const { folders, mutable, hasHashedNames } = assets;
  return [
    '# The file that a request may be for. None of another method, which a worker must see, nor one whose name begins with a dot.',
    block(
      'map "$request_method $uri" $corelane_file',
      'default "";',
      '"~/[.](?!well-known/)" "";',
      '"~^(?:GET|HEAD) (?<corelane_asset>/.*)$" $corelane_asset;',
    ),
    when(
      hasHashedNames,
      '# As esbuild makes them: 40 bits in base32. A date has digits only.',
      block(
        'map $corelane_file $corelane_hashed_file',
        'default "";',
        '"~-(?=[2-7]*[A-Z])[A-Z2-7]{8}[.][a-z0-9]+(?:[.](?:map|br|gz))?$" $corelane_file;',
      ),
    ),
    block(
      'map $uri $corelane_mutable',
      'default "";',
      mutable.map((path) => `${word(path, 'assets.mutable')} changes;`),
    ),
    block('map $corelane_mutable $corelane_immutable', `default "${IMMUTABLE}";`, `changes "${CHANGES}";`),
    [...new Map(folders.map((folder) => [nextVariable(folder), nextMap(folder)])).values()],
  ];
}

function nextMap(folder: AssetFolder): string[] {
  return block(
    `map "$corelane_mutable|${fileOf(folder)}" ${nextVariable(folder)}`,
    `default ${NEXT.page.location};`,
    `"~^changes[|]/" ${NEXT[folder.nextOfMutable].location};`,
    `"~^[|]/" ${NEXT[folder.next].location};`,
  );
}

function nextVariable(folder: AssetFolder): string {
  return `${fileOf(folder)}_or_${NEXT[folder.next].variable}`;
}

function fileOf({ isHashedOnly }: AssetFolder): string {
  return isHashedOnly ? '$corelane_hashed_file' : '$corelane_file';
}

/** Directive of `server`: whether a request is for a file that is missing. */
export const ASSET_VARIABLES: Lines = ['set $corelane_missing "";'];

/** A file takes no time: a page with thirty of them would be the slowest of 31 requests. */
const COUNTED_WITHOUT_TIMES = 'corelane_counts requests;';

/** The drain hook says so by a file (`corelane_draining_file`). */
export const DRAINS = 'if ($corelane_draining)';

/** Directives of `server` where nginx answers by itself: whether the pod drains. */
export const CLOSES_IN_DRAIN: Lines = [
  '# Clients are told to come back with a new connection, as with a page.',
  'set $corelane_closing "";',
  block(DRAINS, 'set $corelane_closing close;'),
];

/** The folder that is the whole site, if there is one: it takes the place of `location /`. */
export function siteAssets(assets: Assets, log: AccessLog): Lines {
  return given(assets.site, (site) => location('location /', site, assets, forClients(site, log)));
}

/**
 * The locations of a server for clients. `page` is what sends a request to a worker, `missing` one for a file.
 */
export function assetLocations(assets: Assets, page: Lines, missing: Lines, log: AccessLog): Lines[] {
  const { below, next } = assets;
  return [
    ...below.map((folder) => location(prefix(folder), folder, assets, forClients(folder, log))),
    block(`location ${NEXT.page.location}`, page),
    when(
      next.worker,
      '# HAProxy sees to it that nobody keeps a 404: the file may be there in a moment.',
      block(`location ${NEXT.worker.location}`, 'set $corelane_missing 1;', missing),
    ),
    when(next.nobody, block(`location ${NEXT.nobody.location}`, 'return 404;')),
    when(
      next.otherThenWorker,
      '# Old and new pods of a rollout have different files, and a page of either may have led here.',
      otherRevision('otherThenWorker', 'worker'),
    ),
    when(next.otherThenNobody, otherRevision('otherThenNobody', 'nobody')),
  ];
}

/** Through HAProxy, which knows the other pods and whom of them to believe. */
function otherRevision(next: Next, then: Next): Lines {
  return block(
    `location ${NEXT[next].location}`,
    `error_page ${NOT_THERE_EITHER.join(' ')} = ${NEXT[then].location};`,
    BODY_ERRORS,
    FILE_ERRORS,
    'proxy_intercept_errors on;',
    COUNTED_WITHOUT_TIMES,
    IGNORES_REDIRECTS,
    '# Longer than any wait in HAProxy.',
    'proxy_read_timeout 10s;',
    'add_header Connection $corelane_closing always;',
    'proxy_pass http://corelane_other_revisions;',
  );
}

/** The upstream of those. */
export const OTHER_REVISIONS: Lines = block(
  'upstream corelane_other_revisions',
  `server unix:${RUN_MOUNT_PATH}/other-revision.sock max_fails=0;`,
);

/** What a client gets beside the file, and where it is written down. */
function forClients(folder: AssetFolder, log: AccessLog): Lines {
  return [
    'add_header Connection $corelane_closing always;',
    COUNTED_WITHOUT_TIMES,
    // HAProxy, which decides when a draining pod has been forgotten, does not see these requests.
    `access_log ${RUN_MOUNT_PATH}/late-assets corelane_late_asset if=$corelane_closing;`,
    writesLines(log),
    `try_files ${fileOf(folder)} ${nextVariable(folder)};`,
  ];
}

function prefix({ path }: AssetFolder): string {
  return `location ^~ ${word(path, 'assets.path')}`;
}

function location(head: string, folder: AssetFolder, assets: Assets, further: Lines): string[] {
  return block(
    head,
    `root ${word(folder.root, 'folder of assets')};`,
    'include /usr/share/corelane/nginx/mime.types;',
    'tcp_nopush on;',
    `max_ranges ${whole(assets.rangesMax, 'ranges')};`,
    // Files change with `corelane run` only. A missing one is not remembered: nobody fills this with names.
    `open_file_cache max=${whole(assets.openFilesMax, 'open files')} inactive=60s;`,
    'open_file_cache_valid 1s;',
    'brotli_static on;',
    'gzip_static on;',
    // Of a proxy in front that says so in Via, or speaks HTTP/1.0, nginx believes that it cannot tell variants apart.
    'gzip_proxied any;',
    'gzip_http_version 1.0;',
    'gzip_vary on;',
    when(folder.isImmutable, 'add_header Cache-Control $corelane_immutable;'),
    when(
      !folder.isImmutable,
      `add_header Cache-Control "public, max-age=${whole(folder.maxAgeSeconds, 'assets.maxAge')}";`,
    ),
    folder.headers.map(
      ([name, value]) => `add_header ${word(name, 'assets.headers')} ${quoted(value, 'assets.headers')};`,
    ),
    further,
  );
}

/** A line in the file of those that come during a drain: its length is all that counts. */
export const LATE_ASSETS_FORMAT = "log_format corelane_late_asset '.';";

/** Its socket. */
export const ASSETS_SOCKET = `${RUN_MOUNT_PATH}/assets.sock`;

/** The server for pods of another revision, behind HAProxy: files, and nothing that could lead to a worker. */
export function peersAssets(assets: Assets): Lines {
  return [
    '# For HAProxy alone, which lets pods of this RenderService come here with a ticket: they look for files of this revision.',
    block(
      'server',
      paragraphs(
        [`listen unix:${ASSETS_SOCKET};`, 'server_name _;', 'access_log off;', 'corelane_counts nothing;'],
        ...assets.below.map((folder) =>
          when(folder.isForPeers, location(prefix(folder), folder, assets, forPeers(folder))),
        ),
        given(assets.site, (site) => when(site.isForPeers, location('location /', site, assets, forPeers(site)))) ||
          block('location /', 'return 404;'),
      ),
    ),
  ];
}

function forPeers(folder: AssetFolder): Lines {
  return `try_files ${fileOf(folder)} =404;`;
}
