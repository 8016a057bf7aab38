/**
 * The shapes that the rules and the converter read. They say no more than that a value has the type that Kubernetes
 * gives it: what passes cannot make a rule throw.
 */
import { z } from 'zod';
import { withQuotesMissing } from '../src/api/quotes.ts';

const text = z.string();
const quantities = z.record(z.string(), z.union([z.string(), z.number()]).nullish()).nullish();
const texts = z.array(text).nullish();
const labels = z.record(z.string(), z.string().nullish()).nullish();
const env = z.looseObject({
  name: text,
  value: text.nullish(),
  valueFrom: z
    .looseObject({
      configMapKeyRef: z.looseObject({}).nullish(),
      secretKeyRef: z.looseObject({}).nullish(),
    })
    .nullish(),
});
const source = z.looseObject({ name: text.nullish() }).nullish();
const container = z.looseObject({
  name: text,
  image: text,
  command: texts,
  args: texts,
  env: z.array(env).nullish(),
  envFrom: z.array(z.looseObject({ configMapRef: source, secretRef: source, prefix: text.nullish() })).nullish(),
  ports: z
    .array(
      z.looseObject({
        name: text.nullish(),
        containerPort: z.int(),
        hostPort: z.int().nullish(),
        protocol: text.nullish(),
      }),
    )
    .nullish(),
  resources: z.looseObject({ requests: quantities, limits: quantities }).nullish(),
  volumeMounts: z.array(z.looseObject({ name: text, mountPath: text })).nullish(),
  readinessProbe: z.looseObject({ httpGet: z.looseObject({ path: text.nullish() }).nullish() }).nullish(),
  lifecycle: z.looseObject({}).nullish(),
  securityContext: z.looseObject({}).nullish(),
  restartPolicy: text.nullish(),
});
/** A label selector, as NetworkPolicies and policies of meshes have it, too. */
export const selector = z
  .looseObject({
    matchLabels: labels,
    matchExpressions: z.array(z.looseObject({ key: text, operator: text, values: texts })).nullish(),
  })
  .nullish();
const podTemplate = z.looseObject({
  metadata: z.looseObject({ labels, annotations: labels }).nullish(),
  spec: z.looseObject({
    containers: z.array(container).min(1),
    // Its image the API server asks for only when the pods are made.
    initContainers: z.array(container.extend({ image: text.nullish() })).nullish(),
    volumes: z
      .array(z.looseObject({ name: text, persistentVolumeClaim: z.looseObject({ claimName: text }).nullish() }))
      .nullish(),
    imagePullSecrets: z.array(z.looseObject({ name: text })).nullish(),
    hostAliases: z.array(z.looseObject({ ip: text, hostnames: texts })).nullish(),
    terminationGracePeriodSeconds: z.int().nullish(),
    serviceAccountName: text.nullish(),
  }),
});
const number = z.union([z.int(), z.string()]);
const metadata = z.looseObject({ name: text, namespace: text.nullish(), labels, annotations: labels });

/** By kind: what is read of it. */
export const PARTS = {
  RenderService: z.looseObject({ metadata, spec: z.looseObject({ template: podTemplate }) }),
  Deployment: z.looseObject({
    metadata,
    spec: z.looseObject({
      replicas: z.int().min(0).nullish(),
      selector,
      template: podTemplate,
      strategy: z
        .looseObject({
          type: text.nullish(),
          rollingUpdate: z.looseObject({ maxSurge: number.nullish(), maxUnavailable: number.nullish() }).nullish(),
        })
        .nullish(),
      minReadySeconds: z.int().nullish(),
      progressDeadlineSeconds: z.int().nullish(),
    }),
  }),
  Service: z.looseObject({
    metadata,
    spec: z.looseObject({
      type: text.nullish(),
      selector: labels,
      sessionAffinity: text.nullish(),
      ipFamilyPolicy: text.nullish(),
      ipFamilies: texts,
      ports: z
        .array(
          z.looseObject({
            name: text.nullish(),
            port: z.int(),
            targetPort: number.nullish(),
            protocol: text.nullish(),
            appProtocol: text.nullish(),
          }),
        )
        .nullish(),
    }),
  }),
  Ingress: z.looseObject({ metadata }),
  HorizontalPodAutoscaler: z.looseObject({
    apiVersion: text,
    metadata,
    spec: z.looseObject({
      scaleTargetRef: z.looseObject({ kind: text, name: text }),
      minReplicas: z.int().nullish(),
      maxReplicas: z.int(),
      targetCPUUtilizationPercentage: z.int().nullish(),
      metrics: z
        .array(
          z.looseObject({
            type: text,
            resource: z.looseObject({ name: text }).nullish(),
            containerResource: z.looseObject({ name: text }).nullish(),
          }),
        )
        .nullish(),
    }),
  }),
  ScaledObject: z.looseObject({
    metadata,
    spec: z.looseObject({
      scaleTargetRef: z.looseObject({ kind: text.nullish(), name: text }),
      minReplicaCount: z.int().nullish(),
      maxReplicaCount: z.int().nullish(),
      triggers: z.array(z.looseObject({ type: text })),
    }),
  }),
  VerticalPodAutoscaler: z.looseObject({
    metadata,
    spec: z.looseObject({
      targetRef: z.looseObject({ kind: text, name: text }),
      updatePolicy: z.looseObject({ updateMode: text.nullish() }).nullish(),
    }),
  }),
  PodDisruptionBudget: z.looseObject({
    metadata,
    spec: z.looseObject({ selector, minAvailable: number.nullish(), maxUnavailable: number.nullish() }),
  }),
  PersistentVolumeClaim: z.looseObject({ metadata, spec: z.looseObject({ accessModes: texts }) }),
  ConfigMap: z.looseObject({ metadata, data: z.record(z.string(), z.unknown()).nullish() }),
  LimitRange: z.looseObject({
    metadata,
    spec: z.looseObject({
      limits: z.array(
        z.looseObject({
          type: text,
          min: quantities,
          max: quantities,
          default: quantities,
          defaultRequest: quantities,
          maxLimitRequestRatio: quantities,
        }),
      ),
    }),
  }),
} as const;
export type ReadKind = keyof typeof PARTS;

/** A value without fields that are null: the API server takes them out as well. */
export function withoutNulls<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item)) as T;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(entries.map(([key, field]) => [key, withoutNulls(field)])) as T;
}

/** The fields of `value` that have another type than Kubernetes gives them, as sentences. */
export function wrongParts(kind: ReadKind, value: unknown): string[] {
  const parsed = PARTS[kind].safeParse(value, { error: withQuotesMissing });
  return (parsed.error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`);
}
