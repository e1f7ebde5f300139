import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from '../../../shared/urls/redis-url.js';
import { StoreUrlError } from '../../../shared/urls/store-url-parts.js';
import { makeAuthority } from '../../support/certificates.js';
import { plant } from '../../support/folders.js';

const canary = 'canary-value';

const node = (host: string, port: number) => ({ host, port });

describe('parseRedisUrl', () => {
  it.each([
    ['redis://localhost', node('localhost', 6379), 0, {}],
    ['redis://localhost/', node('localhost', 6379), 0, {}],
    ['redis://10.0.0.1:7000/15', node('10.0.0.1', 7000), 15, {}],
    ['redis://[::1]:7000', node('::1', 7000), 0, {}],
    ['redis://:pass@h', node('h', 6379), 0, { password: 'pass' }],
    ['redis://us%40er:p%2F%3F%23%3A%25@h', node('h', 6379), 0, { username: 'us@er', password: 'p/?#:%' }],
    ['redis://user:p@ss:word@h', node('h', 6379), 0, { username: 'user', password: 'p@ss:word' }],
  ])('%s -> is read', (url, expected, database, credentials) => {
    const read = { topology: 'single', nodes: [expected], database, credentials };
    expect(parseRedisUrl(url)).toEqual(read);
  });

  it('Sentinels -> the name of the master, and the credentials of both', () => {
    const url =
      'redis-sentinel://user:pass@a,b:7000,[::1]:7001/my%20master/3?sentinel_user=s&sentinel_password=p%26w&prefix=two';
    expect(parseRedisUrl(url)).toEqual({
      topology: 'sentinel',
      nodes: [node('a', 26_379), node('b', 7000), node('::1', 7001)],
      masterName: 'my master',
      database: 3,
      credentials: { username: 'user', password: 'pass' },
      sentinelCredentials: { username: 's', password: 'p&w' },
      prefix: 'two',
    });
  });

  it('a cluster -> its nodes', () => {
    expect(parseRedisUrl('redis-cluster://:pass@a:1,b:2,c?prefix=stage-1')).toEqual({
      topology: 'cluster',
      nodes: [node('a', 1), node('b', 2), node('c', 6379)],
      credentials: { password: 'pass' },
      prefix: 'stage-1',
    });
  });

  it.each([
    ['', /must be a redis:\/\//],
    [`http://${canary}`, /must be a redis:\/\//],
    [`redis-ring://${canary}`, /must be a redis:\/\//],
    [`redis://${canary} `, /must be a redis:\/\//],
    ['redis://', /hosts of the form/],
    [`redis://h:${canary}`, /hosts of the form/],
    ['redis://h:0', /port from 1 to 65535/],
    ['redis://h:70000', /port from 1 to 65535/],
    [`redis://${canary},b`, /one host alone/],
    [`redis://:${canary}/x@h`, /percent-encoded/],
    [`redis://:${canary}?x@h`, /percent-encoded/],
    [`redis://:${canary}#x@h`, /percent-encoded/],
    [`redis://:${canary}%@h`, /has a % that/],
    [`redis://h/${canary}`, /must have as database a number/],
    [`redis://h?password=${canary}`, /not supported: password$/],
    [`redis://h?sentinel_password=${canary}`, /not supported: sentinel_password$/],
    [`redis://h?prefix={${canary}}`, /must have as prefix/],
    [`redis://h?sslrootcert=${canary}`, /must begin with rediss/],
    [`rediss://h?sslmode=${canary}`, /must have as sslmode one of verify-full, verify-ca, no-verify/],
    [`rediss://h?sslrootcert=/${canary}`, /cannot be read \(ENOENT\)$/],
    [`rediss://h?sslcert=/${canary}`, /sslcert and sslkey together/],
    [`redis-sentinel://${canary}`, /must name the master/],
    ['redis-cluster://a/1', /must name no database/],
  ])('%j -> is refused, and nothing of it repeated', (url, complaint) => {
    expect(() => parseRedisUrl(url)).toThrow(StoreUrlError);
    expect(() => parseRedisUrl(url)).toThrow(complaint);
    expect(() => parseRedisUrl(url)).not.toThrow(canary);
  });
});

describe('parseRedisUrl, about TLS', () => {
  it.each(['rediss://h', 'rediss-sentinel://h/master', 'rediss-cluster://h'])(
    '%s -> asks everything of a certificate unless told otherwise',
    (url) => {
      expect(parseRedisUrl(url).tls).toEqual({ rejectUnauthorized: true });
      expect(parseRedisUrl(`${url}?sslmode=verify-full`).tls).toEqual({ rejectUnauthorized: true });
      expect(parseRedisUrl(`${url}?sslmode=no-verify`).tls).toEqual({ rejectUnauthorized: false });
      expect(parseRedisUrl(`${url}?sslmode=verify-ca`).tls).toEqual({
        rejectUnauthorized: true,
        checkServerIdentity: expect.any(Function),
      });
    },
  );

  it('sslrootcert -> the authorities that are named', () => {
    const { certificate } = makeAuthority();
    const { tls } = parseRedisUrl(
      `rediss://h?sslrootcert=${plant({ 'authority.crt': certificate })}/authority.crt`,
    );
    expect(String(tls?.ca)).toBe(certificate);
  });
});
