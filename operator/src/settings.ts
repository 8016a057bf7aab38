/** Settings of the operator process, from its environment. The chart sets them; `--help` lists them. */
import { z } from 'zod';
import { networkPeer } from './api/network-policy.ts';
import { DURATION_PATTERN, durationMs } from './api/scalars.ts';
import { parseWindow } from './turns/window.ts';

const port = (value: number) => z.coerce.number().int().min(1).max(65_535).default(value);

/** Text of JSON as what it says. */
const json = z.string().transform((text, ctx): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    ctx.addIssue({ code: 'custom', message: (error as Error).message });
    return z.NEVER;
  }
});

/** The hours, as `parseWindow` has them. */
const window = z.string().transform((text, ctx) => {
  try {
    return parseWindow(text);
  } catch (error) {
    ctx.addIssue({ code: 'custom', message: (error as Error).message });
    return z.NEVER;
  }
});

const schema = z.object({
  CORELANE_SIDECAR_IMAGE: z.string().min(1).describe('Image of the nginx and HAProxy containers, by tag or digest.'),
  CORELANE_SIDECAR_PULL_POLICY: z
    .enum(['Always', 'IfNotPresent', 'Never'])
    .optional()
    .describe('Pull policy of that image.'),
  CORELANE_NAMESPACES: z
    .string()
    .default('')
    .transform((text) => [...new Set(text.split(/[, ]+/).filter(Boolean))])
    .pipe(
      z
        .array(
          z
            .string()
            .max(63)
            .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'is no name of a namespace'),
        )
        .max(100),
    )
    .describe('The only namespaces to work in, separated by commas; empty for all.'),
  CORELANE_POD_NAME: z.string().min(1).describe('Name of this process, unique among the replicas.'),
  CORELANE_POD_NAMESPACE: z
    .string()
    .min(1)
    .describe('Namespace of the operator: for its Lease, and it may reach the pods.'),
  CORELANE_LEASE_NAME: z.string().min(1).default('corelane').describe('Name of the Lease for leader election.'),
  CORELANE_METRICS_PORT: port(8080).describe('Port of /metrics.'),
  CORELANE_HEALTH_PORT: port(8081).describe('Port of /livez and /readyz.'),
  CORELANE_CONCURRENCY: z.coerce
    .number()
    .int()
    .min(1)
    .max(64)
    .default(4)
    .describe('RenderServices worked on at a time.'),
  CORELANE_SCALING_PERIOD_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(45)
    .default(15)
    .describe('How often RenderServices with scaling are looked at.'),
  CORELANE_DATA_PLANE_MAX_CONCURRENT: z.coerce
    .number()
    .int()
    .min(1)
    .max(1000)
    .default(1)
    .describe('RenderServices that get the pods of another version of the operator at a time.'),
  CORELANE_DATA_PLANE_PAUSE: z
    .string()
    .regex(DURATION_PATTERN, 'is no duration such as 30s or 2m')
    .default('2m')
    .transform(durationMs)
    .describe('For how long one of them must have been healthy before the next one begins.'),
  CORELANE_DATA_PLANE_WINDOW: window
    .optional()
    .describe('When they may begin, such as "Mon-Fri 22:00-04:00 Europe/Berlin"; empty for always.'),
  CORELANE_MONITORING: json
    .pipe(z.array(networkPeer))
    .default([])
    .describe('Who may read the metrics of all pods: NetworkPolicyPeers as a JSON list.'),
  CORELANE_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error'])
    .default('info')
    .describe('Least level that is logged.'),
});

export type Settings = z.output<typeof schema>;

/**
 * Reads the settings.
 * @throws Error that names every wrong variable and what it is for
 */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  // An empty variable is one that a template left blank.
  const present = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = schema.safeParse(present);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map(({ path, message }) => {
    const name = String(path[0]);
    const field = schema.shape[name as keyof typeof schema.shape];
    return `  ${name}: ${message}. ${field?.description ?? ''}`;
  });
  throw new Error(`the environment is not complete:\n${lines.join('\n')}`);
}

/** One line per setting, for --help. */
export function settingsHelp(): string {
  return Object.entries(schema.shape)
    .map(([name, field]) => `  ${name}\n      ${field.description}`)
    .join('\n');
}
