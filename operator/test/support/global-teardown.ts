import { ApiServer } from './api-server.ts';

export default async function remove(): Promise<void> {
  const kubeconfig = process.env.CORELANE_TEST_KUBECONFIG;
  if (kubeconfig) await new ApiServer('jest', kubeconfig).remove();
}
