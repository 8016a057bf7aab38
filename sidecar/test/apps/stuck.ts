// A server that never answers: the path says in which way. Bundled and minified before it is run.
import { execSync } from 'node:child_process';
import http from 'node:http';

function loop() {
  for (;;) Math.random(); // stuck: loop
}

async function microtasks() {
  for (;;) await null; // stuck: microtasks
}

function regex() {
  return /^(a+)+$/.test(`${'a'.repeat(60)}b`); // stuck: regex
}

function child() {
  return execSync('sleep 1000'); // stuck: child
}

http
  .createServer((request) => {
    if (request.url === '/loop') loop();
    if (request.url === '/microtasks') microtasks();
    if (request.url === '/regex') regex();
    if (request.url === '/child') child();
  })
  .listen(Number(process.env.PORT));
