/**
 * The load client: `node load.mjs --help`.
 *
 * Only for this project's own services, on loopback or inside its test cluster. It has no dependencies: the four .mjs
 * files of this folder, in a ConfigMap, run in any image that has Node 20 or newer.
 */
import { parseOptions, USAGE, UsageError } from './options.mjs';
import { runLoad } from './run.mjs';
import { formatTable } from './stats.mjs';

const EXIT_USAGE = 2;

/** @param {string[]} args command line without `node` and the script */
async function main(args) {
  const options = parseOptions(args);
  if (options.help) {
    process.stdout.write(USAGE);
    return;
  }
  // As process 1 of a container it would not end on SIGTERM by itself; what has been measured so far is worth printing.
  const stopping = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stopping.abort(name));
  const result = await runLoad(options, { signal: stopping.signal, onProgress: (line) => console.error(line) });
  // One line: a pod's log mixes it with the progress lines, and `tail -1` gets it out.
  console.log(options.json ? JSON.stringify(result) : formatTable(result));
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`load: ${error.message}\n\n${USAGE}`);
  process.exitCode = EXIT_USAGE;
}
