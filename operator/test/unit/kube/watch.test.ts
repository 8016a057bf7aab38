/** How a stream of changes is read: in whatever pieces it comes, and however it ends. */
import type { ServerResponse } from 'node:http';
import { type WatchEvent, watch } from '../../../src/kube/watch.ts';
import { clientOf, closeServers } from '../../support/scripted-server.ts';

afterEach(closeServers);

/** What a watch of a server that answers so yields; the error that ends it is the last. */
async function watched(answer: (response: ServerResponse) => void, quietMs?: number): Promise<unknown[]> {
  const rest = await clientOf((_request, response) => answer(response));
  const seen: unknown[] = [];
  try {
    for await (const { type, object } of watch(rest, '/a', {}, new AbortController().signal, quietMs)) {
      seen.push(`${type} ${object.metadata.name}`);
    }
  } catch (error) {
    seen.push(error);
  }
  return seen;
}

const line = (type: WatchEvent['type'], name: string) =>
  `${JSON.stringify({ type, object: { metadata: { name } } })}\n`;

test('changes come through in whatever pieces they arrive', async () => {
  const text = Buffer.from(line('ADDED', 'one') + line('MODIFIED', 'zwö') + line('BOOKMARK', 'three'));
  const seen = await watched((response) => {
    let at = 0;
    const next = () => {
      if (at >= text.length) return response.end();
      response.write(text.subarray(at, at + 7), next);
      at += 7;
    };
    next();
  });
  expect(seen).toEqual(['ADDED one', 'MODIFIED zwö', 'BOOKMARK three']);
});

test('an error in the stream is one with its status', async () => {
  const error = { type: 'ERROR', object: { code: 410, reason: 'Expired', message: 'too old resource version' } };
  const seen = await watched((response) => response.end(`${line('ADDED', 'one')}${JSON.stringify(error)}\n`));
  expect(seen).toEqual(['ADDED one', expect.objectContaining({ status: 410, message: 'too old resource version' })]);
});

test('an answer other than 200 is an error with its status', async () => {
  const seen = await watched((response) => response.writeHead(403).end('{"reason":"Forbidden","message":"no"}'));
  expect(seen).toEqual([expect.objectContaining({ status: 403, message: 'no' })]);
});

test('a connection that breaks is an error, and half a change is none', async () => {
  const seen = await watched((response) => {
    response.write(`${line('ADDED', 'one')}{"type":"ADD`, () => response.destroy());
  });
  expect(seen).toEqual(['ADDED one', expect.any(TypeError)]);
});

test('a stream that is quiet for too long ends without an error', async () => {
  expect(await watched((response) => response.write(line('ADDED', 'one')), 100)).toEqual(['ADDED one']);
});

test('a line without an end is given up', async () => {
  const piece = 'x'.repeat(1024 ** 2);
  const seen = await watched((response) => {
    const more = () => {
      if (!response.destroyed) response.write(piece, more);
    };
    more();
  });
  expect(seen).toEqual([expect.objectContaining({ name: 'TooLongError' })]);
});

test('however many watches there are, a call does not wait behind them', async () => {
  const rest = await clientOf((request, response) => {
    if (request.url?.includes('watch')) response.writeHead(200).flushHeaders();
    else response.end('{"is":"there"}');
  });
  // Nine kinds in each of ten namespaces.
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 90 }, () => rest.stream('/a', { watch: 'true' }, signal)));
  expect(await rest.request('GET', '/b', { timeoutMs: 2_000 })).toEqual({ is: 'there' });
});
