/** Traces that begin in a pod, and what a pod records of them. */
import { z } from 'zod';
import { matching, percentage } from '../scalars.ts';

const ENDPOINT_PATTERN =
  /^https?:[/][/]([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?([/][A-Za-z0-9._~%+-]+)*[/]?$/;
const endpointMessage =
  'must be the URL of an OTLP/HTTP endpoint without user, query and fragment, such as http://otel-collector.observability:4318';

const headersFrom = z
  .strictObject({
    name: matching(
      '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
      253,
      'must be the name of a Secret, such as honeycomb',
    ).describe('Name of the Secret, in the same namespace.'),
    key: matching('^[-._a-zA-Z0-9]+$', 253, 'must be a key of a Secret, such as headers')
      .default('headers')
      .describe('Key whose value is what OTEL_EXPORTER_OTLP_HEADERS would have: `NAME=VALUE,NAME=VALUE`.'),
  })
  .optional()
  .describe(
    'A Secret with headers for the endpoint, such as an API key. The operator does not read it: worker-0 has it as a variable of its environment. Without the Secret the pod starts all the same, and nothing is authenticated.',
  );

export const tracing = z
  .strictObject({
    samplingPercent: percentage()
      .default(100)
      .describe(
        'Percentage of the new traces that are marked as sampled. OpenTelemetry follows the mark unless it is told otherwise, so this takes the place of a ratio that your program has for traces that begin in it. What comes with a traceparent is sampled as that says.',
      ),
    endpoint: z
      .string()
      .max(1024)
      .regex(ENDPOINT_PATTERN, endpointMessage)
      .meta({
        'x-kubernetes-validations': [{ rule: `self.matches(r'${ENDPOINT_PATTERN.source}')`, message: endpointMessage }],
      })
      .optional()
      .describe(
        'Where spans of sampled requests are sent to by OTLP/HTTP (protobuf): queue, render, hand-over, and the request as a whole. The path `/v1/traces` is appended, as with OTEL_EXPORTER_OTLP_ENDPOINT. Needs the worker runtime (`runtime.instrument`).',
      ),
    headersFrom,
  })
  .optional()
  .describe(
    'Whether a request that comes without a valid traceparent (W3C Trace Context) gets a new one, and where spans of the pod go. `tracing: {}` is enough for the first. Without it your program begins its own traces, and a valid traceparent is passed on all the same (docs/tracing.md).',
  );
