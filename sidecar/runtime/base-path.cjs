/**
 * Tells of a program that is built for a path (Next's basePath, Nuxt's app.baseURL) that the RenderService does not
 * name: then nginx serves none of its files, and each of them takes a render slot. React Router and Angular have no path
 * by which their files can be recognised.
 */
'use strict';

const FILE =
  /^((?:\/[A-Za-z0-9._~-]{1,64}){1,4})(\/_next\/static\/|\/_nuxt\/|\/_app\/immutable\/|\/_astro\/)[^?]{0,512}\.(?:m?js|css)(?:\?|$)/;
/** A page for every path is no file. */
const IS_FILE = /^HTTP\/1\.1 200 [\s\S]*\r\ncontent-type: *(?:text|application)\/(?:javascript|css)/i;

let isTold = false;

/** Looks at a request that has come to the program, and at its response when that has ended. */
function watchBasePath({ url = '' }, response) {
  if (isTold || !url.includes('/_')) return;
  const [, base, folder] = FILE.exec(url) ?? [];
  if (base === undefined) return;
  response.once('finish', () => {
    if (isTold || !IS_FILE.test(response._header)) return;
    isTold = true;
    process.stderr.write(
      `corelane: this program serves the files of ${base}${folder} itself, each in a render slot. ` +
        `If it is built for the path ${base}, set basePath: ${base} beside framework in the RenderService\n`,
    );
  });
}

module.exports = { watchBasePath };
