/** What the apps of this folder do, whatever the framework. A copy is put into each of their folders. */
let inFlight = 0;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits, and says how many of these requests were in the process when it began. */
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

/** Never returns. */
export function renderPrice() {
  let price = 0;
  while (price >= 0) price += 1; // stuck: loop
  return price;
}
