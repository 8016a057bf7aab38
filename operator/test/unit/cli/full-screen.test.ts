/** The whole terminal: what is written when something changes, and that it is given back. */
import { PassThrough } from 'node:stream';
import { FullScreen } from '../../../cli/full-screen.ts';
import { keysOf } from '../../../cli/run/keys.ts';
import { drawn } from '../../../cli/service/drawn.ts';

const ESCAPE = '\u001b';

function terminal(columns = 20, rows = 5) {
  const stream = Object.assign(new PassThrough(), { columns, rows }) as unknown as NodeJS.WriteStream;
  let resized = 0;
  const screen = new FullScreen(stream, () => {
    resized += 1;
  });
  const written = () => String((stream as unknown as PassThrough).read() ?? '');
  return { stream, screen, written, resized: () => resized };
}

test('only lines that have changed are written', () => {
  const { screen, written } = terminal();
  screen.open();
  screen.draw(['a', 'b', 'c']);
  written();
  screen.draw(['a', 'B', 'c']);
  expect(written()).toBe(`${ESCAPE}[2;1HB${ESCAPE}[K`);
  screen.draw(['a', 'B', 'c']);
  expect(written()).toBe('');
  screen.draw(['a']);
  expect(written()).toBe(`${ESCAPE}[2;1H${ESCAPE}[J`);
  screen.close();
});

test('it is given back, once, and nothing is drawn after that', () => {
  const { screen, written } = terminal();
  const listeners = process.listenerCount('exit');
  screen.open();
  expect(written()).toContain(`${ESCAPE}[?1049h`);
  screen.close();
  screen.close();
  screen.draw(['late']);
  expect(written()).toBe(`${ESCAPE}[?7h${ESCAPE}[?25h${ESCAPE}[?1049l`);
  expect(process.listenerCount('exit')).toBe(listeners);
});

test('of another size all is drawn anew', () => {
  const { stream, screen, written, resized } = terminal();
  screen.open();
  screen.draw(['a', 'b']);
  written();
  Object.assign(stream, { columns: 7, rows: 3 });
  stream.emit('resize');
  expect([resized(), screen.size]).toEqual([1, { width: 7, height: 3 }]);
  screen.draw(['a', 'b']);
  expect(written()).toBe(`${ESCAPE}[H${ESCAPE}[J${ESCAPE}[1;1Ha${ESCAPE}[K${ESCAPE}[2;1Hb${ESCAPE}[K`);
  screen.close();
});

test('what a stranger has sent moves nothing', () => {
  const hostile = `GET /${ESCAPE}[2J${ESCAPE}]0;title\u0007\u202e\r\n\u009bx`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it is about
  expect(drawn({ text: hostile, style: 'plain' })).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  expect(drawn({ text: hostile, style: 'alarm' })).toBe(`${ESCAPE}[31mGET / [2J ]0;title x${ESCAPE}[0m`);
});

test('keys', () => {
  expect(keysOf('jk')).toEqual(['j', 'k']);
  expect(keysOf(`${ESCAPE}[A${ESCAPE}OBq`)).toEqual(['up', 'down', 'q']);
  expect(keysOf('\u0003ä')).toEqual(['\u0003', 'ä']);
});
