/** Which requests that may change something are in progress, whatever has become of their clients and places. */
import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { jest } from '@jest/globals';

const require = createRequire(import.meta.url);
const { Handlers } = require('../../runtime/handlers.cjs') as {
  Handlers: new () => { isBusy: boolean; add(response: object, ms: number): void };
};

class Response extends EventEmitter {
  writableEnded = false;
  headersSent = false;
  end(): void {
    this.writableEnded = true;
  }
}

let nowMs = 0;
let response: Response;
let handlers: { isBusy: boolean; add(response: object, ms: number): void };
beforeEach(() => {
  nowMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  [response, handlers] = [new Response(), new Handlers()];
  handlers.add(response, 300_000);
});
afterEach(() => jest.restoreAllMocks());

test('until its response has been sent', () => {
  expect(handlers.isBusy).toBe(true);
  response.emit('finish');
  expect(handlers.isBusy).toBe(false);
});

test('until the program ends it, when its client has gone', () => {
  response.emit('close');
  nowMs = 200_000;
  expect(handlers.isBusy).toBe(true);
  response.end();
  expect(handlers.isBusy).toBe(false);
});

test('until its time is over', () => {
  response.emit('close');
  nowMs = 300_000;
  expect(handlers.isBusy).toBe(false);
});
