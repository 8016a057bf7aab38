/** Lists of a RenderService whose items leave out every field that has a default. */
import { podTemplate } from './world.ts';

/** A part of a spec: lists of Corelane's own, and of Kubernetes' pod template. */
export const BARE_LISTS = {
  assets: [{ path: '/_next/static/', from: '/app/.next/static' }],
  classes: [{ name: 'api', match: [{ pathPrefix: '/api/' }] }],
  priority: { classes: [{ name: 'robot', match: [{ visitor: 'Crawler' }] }] },
  rollout: {
    canary: {
      steps: [
        { share: 5, for: '5m' },
        { share: 25, approval: true },
      ],
    },
  },
  networkPolicy: { ingress: [{ ports: [{ port: 9000 }] }] },
  template: podTemplate(
    {},
    {
      containers: [
        { name: 'worker', image: 'corelane.test/app:1', resources: { requests: { cpu: 1 } } },
        {
          name: 'mesh',
          image: 'corelane.test/mesh:1',
          ports: [{ containerPort: 7000 }],
          readinessProbe: { httpGet: { port: 7000 } },
        },
      ],
      imagePullSecrets: [{ name: 'registry' }],
      volumes: [
        { name: 'config', configMap: { name: 'config' } },
        { name: 'scratch', emptyDir: {} },
      ],
    },
  ),
};
