// sbom-check.mjs FOLDER: fails if the SBOMs in FOLDER lack something of which we know that it is in the images, or its
// version or licence. Prints how many components each has.
import { readFileSync } from 'node:fs';

const [folder] = process.argv.slice(2);
const json = (path) => JSON.parse(readFileSync(path, 'utf8'));
const errors = [];

/** Components of an image that fit a pattern of package URLs. */
function find(image, components, purl) {
  const found = components.filter((component) => purl.test(component.purl ?? ''));
  if (found.length === 0) errors.push(`${image}: nothing is ${purl}`);
  return found;
}

function check(image, wanted, licensed) {
  const { components } = json(`${folder}/${image}.cdx.json`);
  const { packages } = json(`${folder}/${image}.spdx.json`);
  for (const purl of wanted) {
    for (const { name, version, licenses } of find(image, components, purl)) {
      if (!version) errors.push(`${image}: ${name} has no version`);
      if (licensed.test(purl.source) && !licenses?.length) errors.push(`${image}: ${name} has no licence`);
    }
    const references = packages.flatMap(({ externalRefs = [] }) =>
      externalRefs.map(({ referenceLocator }) => referenceLocator),
    );
    if (!references.some((reference) => purl.test(reference))) errors.push(`${image} (SPDX): nothing is ${purl}`);
  }
  const packaged = components.filter(({ purl }) => purl).length;
  console.log(`${image}: ${packaged} packages in ${image}.cdx.json and ${image}.spdx.json`);
}

const escaped = (text) => text.replaceAll(/[.+]/g, '\\$&');
const lock = json('package-lock.json').packages;
const bundled = json('operator/dist/main.cdx.json').components;
for (const name of ['@kubernetes/client-node', 'pino', 'prom-client', 'undici', 'zod']) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${lock[`node_modules/${name}`].version}`;
  if (!bundled.some((component) => component.purl === purl)) errors.push(`main.cdx.json: ${purl} is missing`);
}
check(
  'operator',
  [
    ...bundled.map(({ purl }) => new RegExp(`^${escaped(purl)}$`)),
    new RegExp(`^pkg:generic/node@${escaped(process.env.NODE_VERSION ?? '')}`),
    /^pkg:deb\/debian\/libc6@/,
  ],
  /npm|deb/,
);
check(
  'sidecar',
  [/haproxy@/, /nginx@/, /liblua5\.\d-0@/, /libssl3(t64)?@/, /libpcre2-8-0@/, /libc6@/].map(
    (name) => new RegExp(`^pkg:deb/debian/${name.source}`),
  ),
  /deb/,
);

for (const error of errors) console.error(error);
process.exitCode = errors.length ? 1 : 0;
