/**
 * One API server for all files of the api project, which run side by side; each file has a namespace of its own in it.
 * A test that changes something for all (a definition) takes a server of its own. The chart's admission policies are in
 * force: so every test of the operator shows that it works under them.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { installAdmissionPolicies } from './admission-policies.ts';
import { ApiServer, repository } from './api-server.ts';

/** garbage-collector: owner references; deployment and replicaset: rollouts. There are no nodes. */
export const CONTROLLERS = 'garbage-collector,deployment,replicaset';

/** Two runs of the api project can overlap (.ci/test.sh): each has a server and a bundle of its own. */
const { CORELANE_TEST_RUN: RUN = 'jest' } = process.env;
/** Where the operator in one file is, as the image has it: it starts in a third of the sources' CPU time. */
const BUNDLE = `.state/operator-${RUN}`;

export default async function start(): Promise<void> {
  execFileSync(join(repository, 'operator/gen/bundle.sh'), [join(repository, BUNDLE)]);
  const server = await ApiServer.start(RUN, { controllers: CONTROLLERS });
  await installAdmissionPolicies(server);
  // Test files run in processes that inherit this environment.
  process.env.CORELANE_TEST_SERVER = server.name;
  process.env.CORELANE_TEST_KUBECONFIG = server.adminKubeconfig;
  process.env.CORELANE_TEST_OPERATOR = `${BUNDLE}/main.mjs`;
}
