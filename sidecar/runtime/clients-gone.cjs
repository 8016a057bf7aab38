/**
 * Renders whose client has gone. HAProxy knows it, and goes on counting them: only the end of a render may free a
 * worker. One that waits for something else than the CPU gives its slot back all the same. HAProxy is asked only where
 * all places of the worker are taken, and one of them by a render that waits.
 */
'use strict';

const net = require('node:net');
const { nowMs } = require('./clock.cjs');
const { ANSWER_MS, tellGone } = require('./servers.cjs');
const { news } = require('./state.cjs');
const { ask } = require('./watchers.cjs');

/** HAProxy's port for probes; NaN where nobody says it. */
const PORT = Number(process.env.CORELANE_CLIENTS_PORT);
const LOOK_MS = 1_000;
/** In a look. To HAProxy all supervisors of a pod are one stranger, whose connections a second it limits (doors.ts). */
const QUESTIONS_MAX = 4;
/** As nginx makes them. They come from the program's process. */
const ID = /^[A-Za-z0-9._-]{1,128}$/;

let isLooking = false;
let lookedAtMs = Number.NEGATIVE_INFINITY;
/** Questions until now. Requests take turns: those that wait for a client that is there must not hide others. */
let asked = 0;

function watchClients() {
  if (PORT > 0) news.on('waits', (server) => void look(server));
}

async function look(server) {
  if (isLooking || nowMs() - lookedAtMs < LOOK_MS) return;
  isLooking = true;
  lookedAtMs = nowMs();
  try {
    const { requests } = (await ask(server.pid, 'requests', { limitMs: ANSWER_MS })) ?? { requests: [] };
    const ids = requests.map(({ id }) => id).filter((id) => ID.test(id));
    for (let left = Math.min(ids.length, QUESTIONS_MAX); left > 0; left -= 1) {
      const id = ids[asked % ids.length];
      asked += 1;
      if (await hasGone(id)) tellGone(server, id);
    }
  } catch {
    // What the process says is nonsense.
  }
  isLooking = false;
}

/** Whether HAProxy has had the request of a client that is not there any more. */
function hasGone(id) {
  return new Promise((resolve) => {
    const socket = net.connect({ host: '127.0.0.1', port: PORT });
    let text = '';
    const done = () => {
      socket.destroy();
      resolve(text.endsWith('\r\n\r\ngone'));
    };
    socket.setTimeout(ANSWER_MS, done);
    socket.on('connect', () => socket.write(`GET /client/${id} HTTP/1.1\r\nHost: localhost\r\n\r\n`));
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('end', done);
    socket.on('error', done);
  });
}

module.exports = { watchClients };
