/** Ten faults of a fleet, each as it happens to people: a page, a program, a node, the network, a crowd. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import type { Shop } from './shop.ts';

/** Begins it; what runs on ends with the shop. */
type Fault = (shop: Shop) => Promise<unknown> | unknown;

const firstOf = ({ pods }: Shop) => pods[0] as Pod;
const sometimes = (path: string, every: number) => {
  let count = 0;
  return () => {
    count += 1;
    return count % every === 0 ? path : '/?ms=5&id=visit';
  };
};
const throttle = (containers: string[], cpus: number) => docker('update', '--cpus', `${cpus}`, ...containers);

export const FAULTS: Record<string, Fault> = {
  'endless loop': (shop) => shop.visit(firstOf(shop), () => '/?loop=1&id=loop', { method: 'POST', pauseMs: 1_000 }),
  'crash loop': (shop) => shop.visit(firstOf(shop), () => '/?die=1&id=dies', { method: 'POST' }),
  'dependency that is dead': (shop) => {
    for (const pod of shop.pods.slice(0, 2)) shop.visit(pod, () => '/?until=database&id=hangs');
  },
  'dependency that is slow': (shop) => {
    for (const pod of shop.pods.slice(0, 2)) shop.visit(pod, () => '/?ms=2000&id=slow');
  },
  // By the clock: beside other work so many rounds of arithmetic would take as long as an endless loop.
  'pages that have become heavy': (shop) => shop.visit(firstOf(shop), () => '/?spin=1500&id=heavy'),
  'CPU throttled': async (shop) => {
    await throttle(
      shop.pods.flatMap(({ workers }) => workers),
      0.15,
    );
    for (const pod of shop.pods)
      for (let n = 0; n < 3; n += 1) shop.visit(pod, () => '/?work=3500000&id=visit', { pauseMs: 10 });
  },
  'one slow worker': async (shop) => {
    await throttle(firstOf(shop).workers.slice(0, 1), 0.1);
    for (let n = 0; n < 2; n += 1) shop.visit(firstOf(shop), () => '/?work=3500000&id=visit', { pauseMs: 20 });
  },
  'a pod cut off from the others': (shop) => shop.addStranger(),
  'queue full from a burst': (shop) => {
    for (const pod of shop.pods)
      for (let n = 0; n < 9; n += 1) shop.visit(pod, () => '/?ms=400&id=crowd', { pauseMs: 50 });
  },
  'the program answers 500': (shop) => {
    for (const pod of shop.pods) shop.visit(pod, sometimes('/?status=500&id=fails', 3));
  },
};
