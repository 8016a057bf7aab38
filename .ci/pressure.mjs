/**
 * A Jest reporter: how busy the machine was while each test file ran, so that people can tell load from a bug. It
 * prints it beside each test that fails, and writes it, with each file's seconds, to $CORELANE_PRESSURE. CPU pressure
 * is the share of the time in which some process waited for a core (/proc/pressure/cpu); steal is the share of all
 * cores' time that the hypervisor gave to others (/proc/stat). Neither is known but on Linux.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Microseconds of waiting, and ticks of all cores, since the machine started. */
function look() {
  const at = { ms: Date.now(), waitedUs: Number.NaN, stolen: Number.NaN, ticks: Number.NaN };
  try {
    at.waitedUs = Number(/^some .*total=(\d+)/m.exec(readFileSync('/proc/pressure/cpu', 'utf8'))?.[1]);
    const [, columns = ''] = /^cpu +(.*)$/m.exec(readFileSync('/proc/stat', 'utf8')) ?? [];
    const ticks = columns.split(' ').map(Number);
    at.stolen = ticks[7] ?? Number.NaN;
    // The last two, guests, stand in the first two, too.
    at.ticks = ticks.slice(0, 8).reduce((sum, value) => sum + value, 0);
  } catch {
    // Not Linux, or a kernel without pressure: NaN, which JSON writes as null.
  }
  return at;
}

/** Percentages since an earlier look. */
function since(begin) {
  const end = look();
  const percent = (part, whole) => (whole > 0 ? Math.round((100 * part) / whole) : 0);
  return {
    seconds: Math.round((end.ms - begin.ms) / 100) / 10,
    pressurePercent: percent(end.waitedUs - begin.waitedUs, (end.ms - begin.ms) * 1000),
    stealPercent: percent(end.stolen - begin.stolen, end.ticks - begin.ticks),
  };
}

export default class {
  #files = new Map();
  #tests = new Map();
  #results = {};

  onTestFileStart({ path }) {
    this.#files.set(path, look());
  }

  onTestCaseStart({ path }, { fullName }) {
    this.#tests.set(`${path} ${fullName}`, look());
  }

  onTestCaseResult({ path }, { fullName, status }) {
    const begin = this.#tests.get(`${path} ${fullName}`);
    this.#tests.delete(`${path} ${fullName}`);
    if (status !== 'failed' || !begin) return;
    const { seconds, pressurePercent, stealPercent } = since(begin);
    const busy = `CPU pressure ${pressurePercent} %, steal ${stealPercent} %`;
    process.stderr.write(`FAILED ${fullName}: after ${seconds} s; meanwhile ${busy}\n`);
  }

  onTestFileResult({ path }) {
    const begin = this.#files.get(path);
    if (begin) this.#results[relative('.', path)] = since(begin);
  }

  onRunComplete() {
    const file = process.env.CORELANE_PRESSURE;
    if (file) writeFileSync(file, `${JSON.stringify(this.#results, null, 2)}\n`);
  }
}
