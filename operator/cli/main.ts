/** `npx corelane COMMAND`: finds the command, prints what went wrong, gives the exit code. */
import type { Command } from './command.ts';
import { TryAgainError, UsageError } from './usage.ts';
import { version } from './version.ts';
import { visibleLines } from './visible.ts';

/** Commands by name. Each is loaded only when it is used: some bring the Kubernetes client along (0.6 s). */
const COMMANDS: Record<string, () => Promise<{ command: Command }>> = {
  explain: () => import('./explain.ts'),
  logs: () => import('./logs.ts'),
  top: () => import('./top.ts'),
  dashboard: () => import('./dashboard.ts'),
  profile: () => import('./profile.ts'),
  rollout: () => import('./rollout.ts'),
  cache: () => import('./cache.ts'),
  simulate: () => import('./simulate.ts'),
  plan: () => import('./plan.ts'),
  check: () => import('./check.ts'),
  convert: () => import('./convert.ts'),
  run: () => import('./run.ts'),
};

/** Exit codes for arguments that cannot be used and for what may work later, as in sysexits.h. */
const EXIT_USAGE = 64;
const EXIT_TRY_AGAIN = 75;

/** @param args what stands behind `corelane` */
export async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined || name === '--help' || name === 'help') {
    console.log(await overview());
    return name === undefined ? EXIT_USAGE : 0;
  }
  if (name === '--version') {
    console.log(version());
    return 0;
  }
  try {
    if (!Object.hasOwn(COMMANDS, name)) throw new UsageError(`there is no command "${name}"; see corelane --help`);
    const { command } = await (COMMANDS[name] as () => Promise<{ command: Command }>)();
    if (args.includes('--help')) {
      console.log(command.help.trim());
      return 0;
    }
    return await command.run(args);
  } catch (error) {
    console.error(`corelane: ${visibleLines((error as Error).message)}`);
    if (error instanceof TryAgainError) return EXIT_TRY_AGAIN;
    return isUsageError(error) ? EXIT_USAGE : 1;
  }
}

async function overview(): Promise<string> {
  const lines = await Promise.all(
    Object.entries(COMMANDS).map(async ([name, load]) => `  ${name.padEnd(10)} ${(await load()).command.summary}`),
  );
  return ['Usage: corelane COMMAND [OPTIONS]', '', ...lines, '', 'corelane COMMAND --help tells the options.'].join(
    '\n',
  );
}

/** parseArgs of node:util reports what it does not know by such codes. */
function isUsageError(error: unknown): boolean {
  return (
    error instanceof UsageError || String((error as NodeJS.ErrnoException).code ?? '').startsWith('ERR_PARSE_ARGS_')
  );
}
