import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { parse } from 'tldts';

/** Matches loopback addresses in the forms of `localAddress`. */
const loopback = /^(::ffff:)?127\.|^::1$/;
const loopbackHost = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

/** Whether a server that listens on this host can be reached from its own machine alone. */
export const isLoopback = (host: string): boolean => host === 'localhost' || loopback.test(host);

/**
 * Whether a request came over a loopback address, but for another host: from a web page whose name was made to lead to
 * this machine (DNS rebinding). On any other address each `Host` may be the deployment's own.
 */
export const isRebound = ({
  socket: { localAddress = '' },
  headers: { host = '' },
}: IncomingMessage): boolean => loopback.test(localAddress) && !loopbackHost.test(host);

// Without those of the other list: private, local and shared ones, and tunnels that may lead to them.
const world = networks('0.0.0.0/0', '2000::/3');
// https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry
const special = networks(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/3',
  '2001::/23',
  '2002::/16',
);

/**
 * Whether a host, as `URL` writes it, is one that all the world may reach, as far as it says. Names count by the public
 * suffix list (https://publicsuffix.org): any other name, such as `vault.vault`, is one that a search domain completes
 * inside a network. Those below `.arpa` lead to no servers of the public, and `home.arpa` to private ones (RFC 8375).
 */
export function isPublicHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$|(?<!\.)\.+$/g, '');
  const family = isIP(host) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(host) === 0) return host.includes('.') && parse(host).isIcann === true && !host.endsWith('.arpa');
  return world.check(host, family) && !special.check(host, family);
}

/** A list finds IPv4 addresses that are mapped to IPv6, too. */
function networks(...all: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of all) {
    const [address = '', prefix] = network.split('/');
    list.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}
