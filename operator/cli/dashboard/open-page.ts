/** Opens the page in the user's browser. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Opens something of this machine, by the program that is there for it. */
export function openInBrowser(url: string, onError: () => void): void {
  const program = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? 'xdg-open';
  const child = spawn(program, [url], { stdio: 'ignore', detached: true, env: process.env });
  child.once('error', onError);
  child.unref();
}

/**
 * Opens an address that only its user may know: arguments of programs can be read by everybody on a machine, so the
 * browser gets a file that leads there and that nobody else can read.
 * @returns removes the file
 */
export function openSecretly(url: string, onError: () => void): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-page-'));
  const file = join(folder, 'page.html');
  // The address is of our own making: letters that mean nothing in HTML.
  writeFileSync(file, `<!doctype html><meta http-equiv="refresh" content="0; url=${url}">`, { mode: 0o600 });
  openInBrowser(pathToFileURL(file).href, onError);
  return () => rmSync(folder, { recursive: true, force: true });
}
