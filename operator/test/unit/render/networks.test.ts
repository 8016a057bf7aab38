import { networks } from '../../../src/render/model/networks.ts';

test.each([
  [
    ['10.0.0.1/8', '10.9.9.9/8', '10.0.0.0/9'],
    ['10.0.0.0/8', '10.0.0.0/9'],
  ],
  [
    ['0.0.0.0/0', '::/0', '1.2.3.4/32', '1.2.3.4/0'],
    ['0.0.0.0/0', '::/0', '1.2.3.4/32'],
  ],
  [['2001:db8::1/32', '2001:DB8:0::/32'], ['2001:db8::/32']],
  [
    ['::ffff:10.1.2.3/104', 'fe80::1/10'],
    ['::ffff:a00:0/104', 'fe80::/10'],
  ],
])('%j: each network once, without bits of a host', (ranges, expected) => {
  expect(networks(ranges)).toEqual(expected);
});
