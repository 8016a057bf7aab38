/** Findings of `check` and `convert` as people and programs read them. */
import { CODES, type Code } from '../check/codes.ts';
import { type Finding, worst } from '../check/finding.ts';
import { LEVELS, type Level } from '../check/levels.ts';
import { lineOfField, type Manifest, pathSteps } from '../convert/manifests.ts';
import { visible } from './visible.ts';

/** Fields that one line names; the others are counted. */
const NAMED_MAX = 4;
const COLUMNS = 100;

/** `deployment.yaml:24`, where the object of a finding was read from a file. */
export function placeOf({ object, path }: Finding, manifests: Manifest[]): string | undefined {
  const manifest = manifests.find(({ kind, name }) => `${kind}/${name}` === object);
  const line = manifest && lineOfField(manifest, pathSteps(path));
  return line === undefined ? undefined : `${manifest?.file}:${line}`;
}

/** Where it is, in words: the line and the path, or the object and the path. */
function where(finding: Finding, manifests: Manifest[], main: string): string {
  const also = finding.also ?? [];
  const more = also.length > NAMED_MAX ? [`and ${also.length - NAMED_MAX} more`] : [];
  const paths = [finding.path, ...also.slice(0, NAMED_MAX), ...more].filter(Boolean).join(', ');
  const object = finding.object === main ? undefined : finding.object;
  return [placeOf(finding, manifests), object, paths].filter(Boolean).join(' ') || finding.object;
}

/** A finding in one line. @param main object that need not be named */
export function findingLine(finding: Finding, manifests: Manifest[], main: string): string {
  const { code, level, what, why, wayOut } = finding;
  return visible(`${code} ${level.padEnd(7)} ${where(finding, manifests, main)}: ${what}. ${why}. ${wayOut}`);
}

/** Checklist of one object: what is fine, what is not, and what could not be looked at. */
export function checklist(
  { findings, looked, skipped }: { findings: Finding[]; looked: Code[]; skipped: { code: Code; why: string }[] },
  manifests: Manifest[],
  main: string,
): string {
  const codes = [...new Set([...looked, ...findings.map(({ code }) => code)])].sort();
  return codes
    .flatMap((code) => {
      const own = findings.filter((finding) => finding.code === code);
      const skip = skipped.find((one) => one.code === code);
      const level = worst(own) ?? (skip ? 'skipped' : 'ok');
      const head = `  ${level.padEnd(8)} ${code}  ${CODES[code].title}`;
      const reason = own.length === 0 && skip ? [wrapped(visible(skip.why))] : [];
      return [head, ...reason, ...own.map((finding) => entry(finding, manifests, main))];
    })
    .join('\n');
}

function entry(finding: Finding, manifests: Manifest[], main: string): string {
  const { what, why, wayOut } = finding;
  return wrapped(visible(`${where(finding, manifests, main)}: ${what}. ${why}. ${wayOut}`));
}

/** Below a line of the checklist, within the terminal. */
function wrapped(text: string): string {
  const indent = ' '.repeat(17);
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) as string;
    if (line !== '' && indent.length + line.length + 1 + word.length > COLUMNS) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.map((line) => `${indent}${line}`).join('\n');
}

/** `1 error, 2 to decide, 3 infos`. */
export function summary(findings: Finding[]): string {
  const names: Record<Level, [one: string, many: string]> = {
    error: ['error', 'errors'],
    decide: ['to decide', 'to decide'],
    warning: ['warning', 'warnings'],
    info: ['info', 'infos'],
  };
  const parts = LEVELS.toReversed().flatMap((level) => {
    const count = findings.filter((finding) => finding.level === level).length;
    return count === 0 ? [] : [`${count} ${names[level][count === 1 ? 0 : 1]}`];
  });
  return parts.length === 0 ? 'nothing found' : parts.join(', ');
}
