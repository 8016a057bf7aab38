/**
 * Renders that seem to wait for a child process which asks the site of the program: Puppeteer, wkhtmltopdf. No mark
 * reaches what such a process sends (own-site.cjs), so its requests wait for render slots. Nothing in here sees these
 * requests, only who is there while a render waits: the log names the executable, never its arguments.
 */
'use strict';

const { ChildProcess } = require('node:child_process');
const { basename } = require('node:path');
const { cpuMs } = require('./processes.cjs');

/** A render waits for so long, and the event loop and the child were idle for nearly all of it. */
const WAITING_MS = 5_000;
const IDLE_SHARE = 0.9;
/** Children that are remembered at a time, and letters of a name. */
const CHILDREN_MAX = 64;
const NAME_MAX = 64;
/** A line in the log, at most this often. */
const TELL_MS = 60_000;
/** Programs that load pages. They may have been started before the render; of any other that says nothing. */
const BROWSER = /chrom|headless|firefox|webkit|playwright|wkhtmlto|weasyprint|phantom|^prince/i;

class ChildWaits {
  #metrics;
  /** By child, while it runs: its name, and when it was started. */
  #running = new Map();
  #quietUntil = 0;

  /** @param metrics `idleMs` is the idle time of the event loop, `childWaits` counts the renders */
  constructor(metrics) {
    this.#metrics = metrics;
    const note = (child, file) => this.#note(child, file);
    const { spawn } = ChildProcess.prototype;
    ChildProcess.prototype.spawn = function spawnAndNote(options, ...rest) {
      const result = spawn.call(this, options, ...rest);
      note(this, options?.file);
      return result;
    };
  }

  #note(child, file) {
    if (child.pid === undefined || typeof file !== 'string' || this.#running.size >= CHILDREN_MAX) return;
    this.#running.set(child, { name: nameOf(file), startedAt: performance.now() });
    child.once('exit', () => this.#running.delete(child));
  }

  /** At each beat in which all places are taken, of a render that has one: says it once of a render. */
  look(render) {
    const { beganAt, response, parts, childWait } = render;
    const child = this.#waitedFor(beganAt);
    if (child === undefined || childWait?.isTold || response.headersSent || parts.size > 0) return;
    if (childWait?.child !== child) return this.#beginLook(render, child);
    const ms = performance.now() - childWait.atMs;
    if (ms < WAITING_MS) return;
    const isIdle = this.#metrics.idleMs[0] - childWait.idleMs >= IDLE_SHARE * ms;
    // A child that works waits for nobody: it makes a PDF, a picture, an archive.
    const waits = isIdle && cpuMs(child.pid) - childWait.cpuMs <= (1 - IDLE_SHARE) * ms;
    if (!waits) return this.#beginLook(render, child);
    childWait.isTold = true;
    this.#metrics.childWaits[0] += 1;
    this.#tell(this.#running.get(child).name);
  }

  #beginLook(render, child) {
    const [atMs, idleMs] = [performance.now(), this.#metrics.idleMs[0]];
    render.childWait = { child, atMs, idleMs, cpuMs: cpuMs(child.pid), isTold: false };
  }

  /** A child that was started during the render, or loads pages. */
  #waitedFor(beganAt) {
    const running = [...this.#running];
    const found =
      running.find(([, { startedAt }]) => startedAt >= beganAt) ?? running.find(([, { name }]) => BROWSER.test(name));
    return found?.[0];
  }

  #tell(name) {
    const now = performance.now();
    if (now < this.#quietUntil) return;
    this.#quietUntil = now + TELL_MS;
    process.stderr.write(
      `corelane: a render has waited for ${WAITING_MS / 1_000} s beside the child process ${JSON.stringify(name)}, ` +
        'and all render slots of this worker are taken. If that process asks the site of this program, its requests ' +
        `wait for render slots: let it ask http://127.0.0.1:${process.env.PORT}\n`,
    );
  }
}

/** The name of an executable, as it may stand in a log. */
function nameOf(file) {
  return basename(file)
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, NAME_MAX);
}

module.exports = { ChildWaits };
