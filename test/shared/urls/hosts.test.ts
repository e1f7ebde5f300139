import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { isPublicHost, isRebound } from '../../../shared/urls/hosts.js';

/** As `URL` writes the host of this address. */
const hostOf = (host: string): string => new URL(`https://${host}/`).hostname;

describe('isPublicHost', () => {
  it.each([
    ...[
      'images.example.org',
      'a.example.co.uk',
      'xn--e1afmkfd.xn--p1ai',
      '8.8.8.8',
      '172.32.0.1',
      '192.0.1.1',
      '[2606:4700::1111]',
    ],
    ...[
      'local.example.org',
      'mylocal.example.com',
      'svc.example.com',
      'images.example.org.',
      '[::ffff:8.8.8.8]',
      '100.128.0.1',
    ],
  ])('%s -> is public', (host) => {
    expect(isPublicHost(hostOf(host))).toBe(true);
  });

  it.each([
    ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '0x7f.1', '0', '127.0.0.1.'],
    ...['10.0.0.5', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.169.254', '0xa9fea9fe'],
    ...['100.64.0.1', '0.0.0.0', '198.18.0.1', '192.0.0.192', '224.0.0.1', '255.255.255.255'],
    ...['[::1]', '[::]', '[fe80::1]', '[fd00::1]', '[fc00::1]', '[ff02::1]', '[fec0::1]'],
    ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:a9fe:a9fe]', '[::127.0.0.1]', '[64:ff9b::7f00:1]'],
    ...['[2002:7f00:1::]', '[2001:0:a00:1::]', 'redis'],
    ...['localhost', 'LOCALHOST', 'localhost.', 'localhost..'],
    ...['kubernetes.default.svc', 'api.default.svc.cluster.local', 'metadata.google.internal', 'a.localhost'],
    ...['nas.lan', 'wiki.corp', 'printer.home.arpa', 'box.local.', 'box.intranet', 'a.private', 'x.home'],
    // A search domain completes these inside a cluster.
    ...['vault.vault', 'kubernetes.default', 'x.consul', 'redis.cache.'],
    ...['a.b.backend', 'x.example', 'x.test'],
  ])('%s -> is none', (host) => {
    expect(isPublicHost(hostOf(host))).toBe(false);
  });
});

describe('isRebound', () => {
  const isRefused = (localAddress: string, host?: string) =>
    isRebound({ socket: { localAddress }, headers: { host } } as unknown as IncomingMessage);
  const loopback = ['127.0.0.1', '127.0.1.1', '::1', '::ffff:127.0.0.1'];

  it.each([
    ...[
      'evil.example',
      'localhost.evil.example',
      '127.0.0.1.evil.example:3000',
      'evil',
      '',
      '10.0.0.1',
      '[::2]',
    ],
  ])('a request over a loopback address for %j -> is one', (host) => {
    expect(loopback.map((address) => isRefused(address, host))).toEqual(loopback.map(() => true));
  });

  it.each(['localhost', 'LocalHost:3000', '127.0.0.1:1', '127.0.0.1', '[::1]', '[::1]:3001'])(
    'a request over a loopback address for %s -> is none',
    (host) => {
      expect(loopback.map((address) => isRefused(address, host))).toEqual(loopback.map(() => false));
    },
  );

  it.each(['10.0.0.7', '172.18.0.5', 'fd00::7', '::ffff:10.0.0.7', 'fe80::1%eth0', '::12'])(
    'a request over %s, as in a deployment -> is none, for any host',
    (address) => {
      for (const host of ['simulator:3002', '10.0.0.7:3003', 'worker-openai', 'evil.example', undefined])
        expect(isRefused(address, host)).toBe(false);
    },
  );
});
