/** The rules of `corelane check` and `corelane convert`. Pure: what they need to know is handed to them. */
import { KIND } from '../src/api/names.ts';
import { parseRenderService, type RenderServiceResource } from '../src/api/resource.ts';
import { autoscalersRule } from './autoscalers.ts';
import { clientsRule } from './clients.ts';
import type { Code } from './codes.ts';
import { conditionsRule } from './conditions.ts';
import { cpuRules } from './cpu.ts';
import type { Finding } from './finding.ts';
import { frameworkRule } from './framework.ts';
import { headsRule } from './heads.ts';
import { imageRule } from './image.ts';
import { limitRangesRule } from './limit-ranges.ts';
import { memoryRule } from './memory.ts';
import { neighboursRule } from './neighbours.ts';
import { nodeOptionsRule } from './node-options.ts';
import { withoutNulls, wrongParts } from './parts.ts';
import { portsRule } from './ports.ts';
import { processesRule } from './processes.ts';
import { refusals } from './refusals.ts';
import { serverRule } from './server.ts';
import { timesRule } from './times.ts';
import { trafficRule } from './traffic.ts';
import type { Rule, Surroundings, Workload } from './workload.ts';

const RULES: Rule[] = [
  ...cpuRules,
  portsRule,
  processesRule,
  nodeOptionsRule,
  memoryRule,
  timesRule,
  autoscalersRule,
  trafficRule,
  neighboursRule,
  imageRule,
  limitRangesRule,
];

/**
 * Only of a RenderService. `convert` keeps the Service of a Deployment, so its clients are as known as before, and its
 * proxies have the memory of the defaults.
 */
const OWN_RULES: Rule[] = [clientsRule, conditionsRule, frameworkRule, headsRule, serverRule];

/** What the API server refuses is found before any rule. */
const REFUSALS: Code[] = ['C001', 'C019'];

export interface Report {
  findings: Finding[];
  /** Codes that were looked at, in order. */
  looked: Code[];
  /** Codes that could not be looked at, or only in part, and why. */
  skipped: { code: Code; why: string }[];
}

/** All rules on a workload. */
export function checkWorkload(workload: Workload): Report {
  const rules = workload.origin === KIND ? [...RULES, ...OWN_RULES] : RULES;
  const skipped = rules.flatMap(({ codes, skipped: whyNot }) => {
    const why = whyNot?.(workload);
    return why === undefined ? [] : codes.map((code) => ({ code, why }));
  });
  const findings = rules.flatMap((rule) => rule.find(workload));
  return { findings, looked: [...new Set([...REFUSALS, ...rules.flatMap(({ codes }) => codes)])].sort(), skipped };
}

/** A RenderService as it comes from a file or the API server. One that is refused is not looked at further. */
export function checkRenderService(resource: RenderServiceResource, surroundings: Surroundings): Report {
  const { name } = resource.metadata;
  const object = `${KIND}/${name}`;
  const wrong = wrongParts(KIND, resource);
  const errors = wrong.map((sentence) => ({
    path: sentence.replace(/: .*$/s, ''),
    message: sentence.replace(/^.*?: /s, ''),
  }));
  const parsed = wrong.length > 0 ? { ok: false as const, errors } : parseRenderService(withoutNulls(resource));
  if (!parsed.ok) {
    const findings = refusals(parsed.errors, object);
    return { findings, looked: [...new Set(findings.map(({ code }) => code))].sort(), skipped: [] };
  }
  return checkWorkload({ origin: KIND, name, object, spec: parsed.renderService.spec, surroundings });
}
