/**
 * Honest clients: `honest.mjs RATE HOST...` sends RATE requests a second for as long as its standard input is open,
 * each when its time has come, whatever the others do, to all hosts in turn over kept connections. Every fourth is a
 * POST. For each it writes `{ at, ms, failed?, foreign? }`: milliseconds of the wall clock, how long it took from the
 * time at which it was to be sent; a status other than 200 and who made it, or an error; whether the answer was another
 * one's.
 */
import http from 'node:http';

const MS_PER_SECOND = 1_000;
/** No honest client waits for longer. */
const ANSWER_MS = 20_000;
const [rate = '', ...hosts] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 200 });
let count = 0;

function ask(number, dueMs) {
  const id = `honest-${number}`;
  const body = number % 4 === 0 ? 'x'.repeat(1 + (number % 3_000)) : '';
  const at = performance.timeOrigin + dueMs;
  const tell = (what) =>
    process.stdout.write(
      `${JSON.stringify({ at, ms: Math.round((performance.now() - dueMs) * 100) / 100, ...what })}\n`,
    );
  const request = http.request(
    {
      host: hosts[number % hosts.length],
      port: 9000,
      path: `/?id=${id}&ms=5`,
      method: body ? 'POST' : 'GET',
      agent,
      headers: { 'x-request-id': id, ...(body && { 'content-length': body.length }) },
      signal: AbortSignal.timeout(ANSWER_MS),
    },
    (response) => {
      let text = '';
      response.setEncoding('latin1').on('data', (chunk) => {
        text += chunk;
      });
      response.on('error', (error) => tell({ failed: error.code ?? error.name }));
      response.on('end', () => {
        if (response.statusCode !== 200)
          return tell({ failed: `${response.statusCode} ${response.headers['x-corelane-error'] ?? ''}` });
        tell(isOwn(text, id, body.length) ? {} : { foreign: text.slice(0, 500) });
      });
    },
  );
  // What is sent over a kept connection that ends in this moment is lost for a client that does not try again; browsers
  // do.
  request.on('error', (error) => tell({ failed: error.code ?? error.name, isReused: request.reusedSocket }));
  request.end(body);
}

function isOwn(text, id, bytes) {
  try {
    const answer = JSON.parse(text);
    return answer.id === id && answer.bytes === bytes && answer.headers['x-request-id'] === id;
  } catch {
    return false;
  }
}

const beganMs = performance.now();
function tick() {
  for (;;) {
    const dueMs = beganMs + (count * MS_PER_SECOND) / Number(rate);
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) return setTimeout(tick, waitMs);
    count += 1;
    ask(count, dueMs);
  }
}
tick();
process.stdin.resume().on('end', () => setTimeout(() => process.exit(0), 1_000));
