/** The Node.js of a worker's container, beside its program. */
import type { Engine } from './engine.ts';

/** Runs it with these arguments; gives what it prints. */
export function nodeIn(engine: Engine, container: string, args: string[]): Promise<string> {
  const exec = ['exec', '--env', 'NODE_OPTIONS=', container];
  return engine.run(...exec, 'node', ...args).catch((error) => {
    if (!/executable file not found|no such file/i.test(error.message)) throw error;
    return engine.run(...exec, '/proc/1/exe', ...args); // an image without PATH, such as distroless
  });
}

/** Prints the body of a page of the supervisor; the exit code tells whether the status was 200. */
const ASK = `
  const [port, path] = process.argv.slice(-2);
  require('node:http').get({ host: '127.0.0.1', port, path, headers: { 'X-Corelane-Runtime': 'true' } }, (response) => {
    const isGood = response.statusCode === 200;
    response.pipe(isGood ? process.stdout : process.stderr);
    response.on('end', () => { process.exitCode = isGood ? 0 : 1; });
  }).on('error', (error) => { console.error(error.message); process.exitCode = 1; });`;

/**
 * A page of a worker's supervisor, those with a header among them.
 * @throws Error with what it answers when that is not 200
 */
export function supervisorPage(engine: Engine, container: string, port: number, path: string): Promise<string> {
  return nodeIn(engine, container, ['-e', ASK, '--', String(port), path]);
}
