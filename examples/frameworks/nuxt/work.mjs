/** What the pages of this app do, whatever the framework. All examples have the same file. */
import { existsSync } from 'node:fs';

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let inFlight = 0;

/** Waits, and says how many of these requests were in the process when it began: 1 with `concurrency: 1`. */
export async function slow(ms) {
  inFlight += 1;
  const text = `in flight: ${inFlight}`;
  await wait(ms);
  inFlight -= 1;
  return text;
}

/** The same in pieces. */
export async function* pieces() {
  inFlight += 1;
  yield `in flight: ${inFlight}`;
  for (let piece = 0; piece < 5; piece += 1) {
    await wait(50);
    yield '.';
  }
  inFlight -= 1;
}

/**
 * Stands for a slow service: the part of a page that comes later. A test that wants to see what is there before lets it
 * wait for a file.
 */
export async function reviews() {
  await wait(300);
  while (process.env.WAITS_FOR && !existsSync(process.env.WAITS_FOR)) await wait(20);
  return 'three reviews';
}

/** Never returns: see what the watchdog makes of it. */
export function renderPrice() {
  let price = 0;
  while (price >= 0) price += 1; // stuck: loop
  return price;
}

/** What a sign-in leaves in a browser: a session of 6,000 bytes, in two cookies. */
export function sessionCookies() {
  return [0, 1].map((part) => `session.${part}=${'s'.repeat(3000)}; Path=/; HttpOnly; SameSite=Lax`);
}

/** How much of a session the header `Cookie` has. */
export function sessionBytes(cookie) {
  return [...(cookie ?? '').matchAll(/session\.[01]=(s*)/g)].reduce((sum, [, part]) => sum + part.length, 0);
}
