/**
 * Tells of a program that is built for a path (Next's basePath, Nuxt's app.baseURL) that the RenderService does not
 * name: then nginx serves none of its files, and each of them takes a render slot. React Router and Angular have no
 * path by which their files can be recognised.
 */
'use strict';

const FILE =
  /^((?:\/[A-Za-z0-9._~-]{1,64}){1,4})(\/_next\/static\/|\/_nuxt\/|\/_app\/immutable\/|\/_astro\/)[^?]{0,512}\.(?:m?js|css)(?:\?|$)/;
const IS_OK = /^HTTP\/1\.1 200 /;
/** A page for every path is no file. */
const IS_FILE = /\r\ncontent-type: *(?:text|application)\/(?:javascript|css)/i;
/** Files of a few pages: a program that passes on the files of another one has had a page of its own by then. */
const FILES_MIN = 50;

/** First part of all paths that the program has answered with 200 so far. */
let first;
let files = 0;
/** It is told, or the program has answers elsewhere: it is not built for one path. */
let isSettled = false;

/** Looks at a request that has come to the program, and at its response when that has ended. */
function watchBasePath({ url = '' }, response) {
  if (isSettled) return;
  response.once('finish', () => {
    if (!isSettled && IS_OK.test(response._header)) note(url, response._header);
  });
}

function note(url, header) {
  const part = /^\/[^/?]*/.exec(url)?.[0];
  first ??= part;
  if (part !== first || part === '/') isSettled = true;
  const [, base, folder] = (IS_FILE.test(header) && FILE.exec(url)) || [];
  if (isSettled || base === undefined) return;
  files += 1;
  if (files < FILES_MIN) return;
  isSettled = true;
  process.stderr.write(
    `corelane: this program serves the files of ${base}${folder} itself, each in a render slot. ` +
      `If it is built for the path ${base}, set basePath: ${base} beside framework in the RenderService\n`,
  );
}

module.exports = { watchBasePath };
