/**
 * Tells of a program that is built for a path (Next's basePath, Nuxt's app.baseURL) that the RenderService does not
 * name: then nginx serves none of its files, and each of them takes a render slot. React Router and Angular have no
 * path by which their files can be recognised.
 */
'use strict';

const diagnostics = require('node:diagnostics_channel');

const FILE =
  /^((?:\/[A-Za-z0-9._~-]{1,64}){0,4})(\/_next\/static\/|\/_nuxt\/|\/_app\/immutable\/|\/_astro\/)[^?]{0,512}\.(?:m?js|css)(?:\?|$)/;
const IS_OK = /^HTTP\/1\.1 200 /;
/** A page for every path is no file. */
const IS_FILE = /\r\ncontent-type: *(?:text|application)\/(?:javascript|css)/i;
const IS_PAGE = /\r\ncontent-type: *text\/html/i;
/** Probes, and files that have their place at the root whatever the program is built for (robots.txt). */
const IS_ALONE = /^(?:\/api)?\/[_-]?(?:health|read[yi]|live|status|ping|metrics)[a-z_-]{0,6}\/?$|\.[a-z0-9]{1,11}$/i;
/** Browsers keep such files, so a worker sees each of them a few times only. A page of Next has more. */
const FILES_MIN = 5;
/** As many as `base` may have. */
const SEGMENTS_MAX = 4;
/** Requests that this process sends, and the field of the message that has their path. */
const SENT = ['http.client.request.start', 'undici:request:create'];

/** Of the path below which all pages are that the program has answered with 200 so far. */
let segments;
/** The path below which the files are, their folder, and the files. */
const files = { base: undefined, folder: undefined, paths: new Set() };
/** It is told, or the program is not built for one path. */
let isSettled = false;

/** Looks at a request that has come to the program, and at its response when that has ended. */
function watchBasePath({ url = '' }, response) {
  if (isSettled) return;
  response.once('finish', () => {
    if (!isSettled && IS_OK.test(response._header)) note(url, response._header);
  });
}

function note(url, header) {
  const [path] = url.split('?');
  if (IS_PAGE.test(header)) notePage(path);
  else if (IS_FILE.test(header)) noteFile(path);
}

function notePage(path) {
  if (IS_ALONE.test(path)) return;
  const own = path.split('/').slice(1, 1 + SEGMENTS_MAX);
  const common = segments?.findIndex((segment, index) => segment !== own[index]) ?? -1;
  segments = common < 0 ? (segments ?? own) : segments.slice(0, common);
  // A page at the root: no path is before all pages.
  if (!segments[0]) return settle();
  tell();
}

function noteFile(path) {
  const [, below, folder] = FILE.exec(path) ?? [];
  if (below === undefined) return;
  files.base ??= below;
  files.folder = folder;
  // Without a path before it, or with several: not what basePath is for.
  if (below === '' || below !== files.base) return settle();
  if (files.paths.size < FILES_MIN) files.paths.add(path);
  tell();
}

/** An asset prefix has its pages elsewhere. */
function tell() {
  const { base, folder, paths } = files;
  if (paths.size < FILES_MIN || !hasPagesBelow(base)) return;
  settle();
  process.stderr.write(
    `corelane: this program serves the files of ${base}${folder} itself, each in a render slot. ` +
      `If it is built for the path ${base}, set basePath: ${base} beside framework in the RenderService\n`,
  );
}

function hasPagesBelow(path) {
  return path.split('/').every((segment, index) => index === 0 || segment === segments?.[index - 1]);
}

/** A program that asks for such a file passes on what another one is built for (Next's zones). */
function lookAtSent({ request }) {
  if (!isSettled && FILE.test(request?.path)) settle();
}

function settle() {
  isSettled = true;
  files.paths.clear();
}

// For good: in older Node.js whoever unsubscribes while a message is published takes it from the next subscriber.
for (const channel of SENT) diagnostics.subscribe(channel, lookAtSent);

module.exports = { watchBasePath };
