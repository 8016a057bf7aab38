/** The rules with their hours made seconds: the same expressions, times and ranges a number of times shorter. */
import { ruleGroups } from '../../../operator/gen/alerts/rules.ts';

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

function squeezedTime(text: string, times: number): string {
  const seconds = Number.parseInt(text, 10) * (SECONDS[text.slice(-1)] ?? Number.NaN);
  return `${Math.round((1000 * seconds) / times)}ms`;
}

/** Ranges and offsets of an expression, or of the queries in a description. */
export function squeezedText(text: string, times: number): string {
  return text.replaceAll(/(\[|offset )([0-9]+[smhd])\b/g, (_all, before, time) => before + squeezedTime(time, times));
}

/** What a rules file has, so many times faster. */
export function squeezedGroups(times: number) {
  return ruleGroups().map(({ name, rules }) => ({
    name,
    rules: rules.map((rule) => {
      const expr = squeezedText(rule.expr, times);
      if (!('alert' in rule)) return { ...rule, expr };
      const pending = rule.for ? { for: squeezedTime(rule.for, times) } : {};
      const description = squeezedText(rule.annotations.description, times);
      return { ...rule, ...pending, expr, annotations: { ...rule.annotations, description } };
    }),
  }));
}
