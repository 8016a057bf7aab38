/**
 * Whom a client is told apart by: the address of IPv4, a /64 of IPv6, of which everybody has as many addresses as he
 * likes. An IPv4 address that is told as an IPv6 one (::ffff:192.0.2.1) is one of IPv4 for ipmask.
 */
export const CLIENT_NETWORK = 'req.hdr_ip(X-Real-IP),ipmask(32,64)';

/** The same where nobody is to be many: whoever has an IPv6 connection of his own may have a /48. */
export const CLIENT_SITE = 'req.hdr_ip(X-Real-IP),ipmask(32,48)';
