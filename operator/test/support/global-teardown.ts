import { ApiServer } from './api-server.ts';

export default async function remove(): Promise<void> {
  const { CORELANE_TEST_SERVER: name, CORELANE_TEST_KUBECONFIG: kubeconfig } = process.env;
  if (name && kubeconfig) await new ApiServer(name, kubeconfig).remove();
}
