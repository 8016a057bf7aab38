/** `corelane run`: a RenderService on this machine, without Kubernetes. */
import type { Command } from './command.ts';
import { runOptions } from './run/options.ts';
import { Session } from './run/session.ts';

const help = `
Usage: corelane run FILE.yaml|FOLDER [--pods N] [--workers N] [--port N] [--image I] [--env K=V] [--env-file F]
                    [--allowed-host NAME] [--watch] [--load N] [--chaos] [--dashboard] [--quiet-logs]
                    [--engine docker|podman]

Runs a RenderService, or a folder with a Node.js program, in containers of Docker or Podman: the same proxies,
configuration and worker runtime as in a cluster. Ctrl-C removes everything. docs/run.md tells what is left out.

      --pods N           pods (1); they share their work
      --workers N        workers per pod (spec.workersPerPod; 2 for a folder)
      --port N           port on 127.0.0.1 (8080, or the next that is free)
      --allowed-host N   name by which a browser may ask, beside those of this machine; several are possible
      --image I          image of the workers; for a folder one with Node.js
      --env K=V          variable of the workers; several are possible
      --env-file F       a file with variables, as node --env-file reads it
      --watch            a folder: when a file changes the workers are replaced one after the other, and no request is lost
      --load N           sends N requests a second to /
      --chaos            a fault every few seconds, and a table of what each cost whom (with --load 10 unless given)
      --dashboard        says where the page of corelane dashboard is; [d] opens it
      --quiet-logs       without the log of the workers
      --engine E         docker or podman (the first that answers)

Exit code: 0 when it was ended by Ctrl-C, SIGTERM or [q]; 64 for options that cannot be used; else 1.
`;

/** For the last words. */
const EXIT_MS = 50;

export const command: Command = {
  summary: 'a RenderService or a folder on this machine, without Kubernetes',
  help,
  async run(args) {
    const session = new Session(runOptions(args));
    try {
      return await session.run();
    } finally {
      // What was waited for at the end (a pod that was to become ready) would hold the process.
      setTimeout(() => process.exit(), EXIT_MS).unref();
    }
  },
};
