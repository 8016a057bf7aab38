/** What peers show each other, made anew here from docs/adr/0014: the tests do not believe the proxy's own code. */
import { createHmac } from 'node:crypto';

/** Begins each connection: PROXY protocol 2, LOCAL, or with a ticket in a TLV of type 0xE0. */
export function connectionHead(ticket) {
  const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
  if (ticket === undefined) return Buffer.concat([signature, Buffer.from([0x20, 0, 0, 0])]);
  const value = Buffer.from(ticket, 'latin1');
  const tlv = Buffer.concat([Buffer.from([0xe0, value.length >> 8, value.length & 0xff]), value]);
  return Buffer.concat([signature, Buffer.from([0x20, 0, tlv.length >> 8, tlv.length & 0xff]), tlv]);
}

/** Begins a connection with addresses that a proxy in front might have seen, or that somebody makes up. */
export function headWithAddresses(source, destination) {
  const octets = (address) => address.split('.').map(Number);
  const ports = [0x10, 0, 0x23, 0x29];
  const addresses = Buffer.from([...octets(source), ...octets(destination), ...ports]);
  return Buffer.concat([connectionHead().subarray(0, 12), Buffer.from([0x21, 0x11, 0, addresses.length]), addresses]);
}

/** Version of docs/protocol.md that pods speak. */
const PROTOCOL_VERSION = '9';

/** Both halves of the HMAC over a label and fields, in hex: a token, or a ticket and its proof. */
export function tokens(key, label, ...fields) {
  return tokensOf(PROTOCOL_VERSION, key, label, ...fields);
}

/** The same for pods that speak another version. */
export function tokensOf(version, key, label, ...fields) {
  const digits = createHmac('sha256', key)
    .update([version, label, ...fields].join('\n'))
    .digest('hex');
  return [digits.slice(0, 32), digits.slice(32)];
}
