/** `corelane explain` and the page of `corelane dashboard`, as people have them: who reads has nothing else. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { SERVICE } from './shop.ts';

const CORELANE = join(fileURLToPath(new URL('../..', import.meta.url)), 'operator/bin/corelane.mjs');
const VIEW = { width: 1100, height: 700 };

/** What `corelane explain` prints. It looks twice, five seconds apart. */
export async function explained(): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [CORELANE, 'explain', '--local', SERVICE]);
  return stdout.trimEnd().split('\n');
}

/** The page of `corelane dashboard`, open in a browser. */
export class Dashboard {
  readonly #process: ChildProcess;
  readonly #page: Page;

  private constructor(child: ChildProcess, page: Page) {
    this.#process = child;
    this.#page = page;
  }

  static async open(browser: Browser): Promise<Dashboard> {
    const child = spawn(process.execPath, [CORELANE, 'dashboard', '--local', SERVICE], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    // It would stay behind a bench that is ended.
    process.once('exit', () => child.kill());
    try {
      const url = await addressOf(child);
      const context = await browser.newContext({ viewport: VIEW, locale: 'en-GB', timezoneId: 'UTC' });
      const page = await context.newPage();
      await page.goto(url);
      await page.locator('.explanation .now').waitFor();
      return new Dashboard(child, page);
    } catch (error) {
      child.kill();
      throw error;
    }
  }

  /** What it says limits the service, as the lines of `corelane explain`. */
  lines(): Promise<string[]> {
    return this.#page.locator('.explanation p').allInnerTexts();
  }

  picture(): Promise<Buffer> {
    return this.#page.screenshot({ animations: 'disabled' });
  }

  async close(): Promise<void> {
    await this.#page.context().close();
    const ended = once(this.#process, 'exit');
    if (this.#process.kill('SIGTERM')) await ended;
  }
}

/** @throws Error when it ends without a word */
async function addressOf(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    if (line.startsWith('http:')) return line;
  }
  throw new Error('corelane dashboard has ended and told no address');
}
