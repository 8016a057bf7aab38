/** Ranges of addresses as nginx wants them. */
import ipaddr from 'ipaddr.js';

/**
 * The networks that `ranges` (CIDR notation) are in, each once: 10.0.0.1/8 becomes 10.0.0.0/8. nginx takes the other
 * writing for the same, but warns of it at each start.
 */
export function networks(ranges: readonly string[]): string[] {
  return [...new Set(ranges.map(network))];
}

function network(range: string): string {
  if (!ipaddr.isValidCIDR(range)) return range;
  const [address, bits] = ipaddr.parseCIDR(range);
  const family = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6;
  return `${family.networkAddressFromCIDR(range)}/${bits}`;
}
