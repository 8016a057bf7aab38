/** Pods that find no room: who says so, and who will make some anyway. */
import type { KubeObject } from '../../src/kube/types.ts';
import { podsWithoutRoom } from '../../src/pods/without-room.ts';

const object = (parts: object) => parts as KubeObject;
const pod = (status: string, reason?: string, phase = 'Pending') =>
  object({ status: { phase, conditions: [{ type: 'PodScheduled', status, reason }] } });
const lacking = pod('False', 'Unschedulable');
const deployment = (message?: string) =>
  object({
    spec: { replicas: 5 },
    status: { replicas: 3, conditions: message ? [{ type: 'ReplicaFailure', status: 'True', message }] : [] },
  });
const QUOTA = 'pods "shop-1" is forbidden: exceeded quota: small, requested: pods=1';

test.each<[what: string, deployment: KubeObject | undefined, pods: KubeObject[], leaving: KubeObject[], count: number]>(
  [
    ['no node has room', deployment(), [lacking, pod('True'), lacking], [], 2],
    ['somebody holds it back from the scheduler', deployment(), [pod('False', 'SchedulingGated')], [], 0],
    ['a quota is used up', deployment(QUOTA), [pod('True')], [], 2],
    ['something else is refused', deployment('violates PodSecurity'), [pod('True')], [], 0],
    ['both', deployment(QUOTA), [lacking], [], 3],
    ['those that go make room', deployment(), [lacking, lacking], [pod('True')], 1],
    ['those that have ended have none', deployment(), [lacking], [pod('True', undefined, 'Failed')], 1],
    ['more go than there are to come', deployment(), [lacking], [pod('True'), pod('True')], 0],
    ['there is no such revision yet', undefined, [], [], 0],
  ],
)('%s', (_what, of, pods, leaving, count) => expect(podsWithoutRoom(of, pods, leaving)).toBe(count));
