/** What pods answer, of whom any may be a stranger. */
import { Readable } from 'node:stream';
import { bodyText } from '../../../cli/pod-page.ts';

test('an answer is a text', async () => {
  expect(
    await bodyText(Readable.from([Buffer.from('gr\xc3', 'latin1'), Buffer.from('\xb6\xc3\x9f', 'latin1')]), 6),
  ).toBe('größ'.slice(0, 4));
});

test('one without an end is read no further than that', async () => {
  let sent = 0;
  const endless = new Readable({
    read() {
      sent += 1_000;
      this.push(Buffer.alloc(1_000, 'x'));
    },
  });
  await expect(bodyText(endless, 50_000)).rejects.toThrow('the answer has more than 50000 bytes');
  expect([endless.destroyed, sent < 200_000]).toEqual([true, true]);
});
