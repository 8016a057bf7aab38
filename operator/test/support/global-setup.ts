/**
 * One API server for all files of the api project, which run side by side; each file has a namespace of its own in it.
 * A test that changes something for all (a definition) takes a server of its own. The chart's admission policies are in
 * force: so every test of the operator shows that it works under them.
 */
import { installAdmissionPolicies } from './admission-policies.ts';
import { ApiServer } from './api-server.ts';

/** garbage-collector: owner references; deployment and replicaset: rollouts. There are no nodes. */
export const CONTROLLERS = 'garbage-collector,deployment,replicaset';

export default async function start(): Promise<void> {
  const server = await ApiServer.start('jest', { controllers: CONTROLLERS });
  await installAdmissionPolicies(server);
  // Test files run in processes that inherit this environment.
  process.env.CORELANE_TEST_KUBECONFIG = server.adminKubeconfig;
}
