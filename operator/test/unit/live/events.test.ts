/** Events, which whoever may make some in the namespace has written. */
import { eventsOf } from '../../../live/events.ts';
import { entriesOfEvents } from '../../../live/timeline.ts';

test('whatever is in an Event, it has a bounded length', () => {
  const long = 'x'.repeat(1_500_000);
  const object = { type: long, reason: long, message: long, eventTime: '2026-11-26T12:00:00.000000Z' };
  const events = eventsOf([object]);
  expect(events.map(({ type, reason, message }) => [type.length, reason.length, message.length])).toEqual([
    [128, 128, 1_024],
  ]);
  expect(JSON.stringify(entriesOfEvents(events)).length).toBeLessThan(1_500);
});

test('one whose time is none is none', () => {
  expect(eventsOf([{ eventTime: 'soon' }, {}, { lastTimestamp: '+999999-01-01T00:00:00Z' }])).toEqual([]);
});
